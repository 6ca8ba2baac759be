"""The reproductions: the thesis's numbers beside ours."""
