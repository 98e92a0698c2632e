/** Asks about large amounts, and forgets to answer for the others. */
export function approveSmall({ input }: { readonly input: { readonly euros?: unknown } }): 'run' | 'ask' {
  if (Number(input.euros) > 100) return 'ask'
  // A compiler would have asked for the other answer.
  return undefined as never
}
