/** Characters of an expression. */
export const maxLength = 1_000
/** How deep parentheses, calls, signs and powers may nest. */
export const maxDepth = 64
/** Digits of a numerator or denominator: what keeps every step in well under a millisecond. */
export const maxDigits = 500
