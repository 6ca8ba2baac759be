"""Tables, figures, tests and the page, made from the files of a folder alone."""
