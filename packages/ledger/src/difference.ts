/** One place in which two values differ; `undefined` where one has nothing there. */
export interface Difference {
  /** Such as `content[0].text`. */
  readonly path: string
  readonly recorded: unknown
  readonly happened: unknown
}

/** Where two JSON values differ, by path, in the order of the first value's keys. Equal values give nothing. */
export function differencesOf(recorded: unknown, happened: unknown, path = ''): readonly Difference[] {
  if (Object.is(recorded, happened)) return []
  if (
    !isContainer(recorded) ||
    !isContainer(happened) ||
    Array.isArray(recorded) !== Array.isArray(happened)
  ) {
    return [{ path: path || '(all)', recorded, happened }]
  }
  const keys = new Set([...Object.keys(recorded), ...Object.keys(happened)])
  return [...keys].flatMap((key) => {
    const place = Array.isArray(recorded) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`
    return differencesOf(recorded[key], happened[key], place)
  })
}

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
