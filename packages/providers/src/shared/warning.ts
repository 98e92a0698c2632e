/** Something that a request asked for and that a wire cannot be told. The call goes out without it. */
export interface Warning {
  /** What was left out or changed. */
  readonly what: string
  /** One sentence, for people: names and places, never what was said. */
  readonly message: string
}

/** Tells of each thing once. */
export function warnOnce<Told extends Warning>(
  onWarning: ((warning: Told) => void) | undefined,
): (warning: Told) => void {
  const told = new Set<string>()
  return (warning) => {
    if (onWarning === undefined || told.has(warning.message)) return
    told.add(warning.message)
    onWarning(warning)
  }
}
