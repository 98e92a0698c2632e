/** The places of a reply's parts, as `assistant_message_finished` says them: nothing where they are 0, 1, 2 … */
export function partPositions(parts: readonly { readonly part: number }[]): {
  readonly places?: readonly number[]
} {
  return parts.every(({ part }, index) => part === index) ? {} : { places: parts.map(({ part }) => part) }
}
