"""Values in a sentence: amounts, dates, numbers, choices, codes, texts; never invented."""
