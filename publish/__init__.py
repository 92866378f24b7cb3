"""Generate the README's figures, the site and the pages of results."""
