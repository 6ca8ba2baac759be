"""Secret sums: masks that cancel in a total, and fixed-point numbers to which they are added."""
