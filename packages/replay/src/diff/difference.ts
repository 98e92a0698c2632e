import { option, requireOptions } from '@tallystick/core/kit'

/** One place in which two values differ; `undefined` where one has nothing there. */
export interface Difference {
  /** Such as `content[0].text`; items with a name are identified by it: `definition.tools[pay].description`. */
  readonly path: string
  readonly recorded: unknown
  readonly happened: unknown
}

const foundDifferences = option.listOf(
  option.valueThat('a difference', (value) => typeof Object(value).path === 'string'),
)

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
  if (Array.isArray(recorded) && Array.isArray(happened)) return listDifferences(recorded, happened, path)
  const keys = new Set([...Object.keys(recorded), ...Object.keys(happened)])
  return [...keys].flatMap((key) =>
    differencesOf(recorded[key], happened[key], path === '' ? key : `${path}.${key}`),
  )
}

/**
 * Returns the differences to show to people: without digests, unless only digests differ, and of long texts only the
 * lines between the first and the last change. The path then names the first of these lines.
 */
export function reportedDifferences(differences: readonly Difference[]): readonly Difference[] {
  requireOptions('reportedDifferences', foundDifferences, differences, 'the list of differences')
  const reported = differences.filter(({ path }) => !/(^|\.)(d|\w+D)igest$/.test(path))
  return (reported.length > 0 ? reported : differences).map(withChangedLines)
}

function withChangedLines(difference: Difference): Difference {
  const { path, recorded, happened } = difference
  if (typeof recorded !== 'string' || typeof happened !== 'string') return difference
  const [before, after] = [recorded.split('\n'), happened.split('\n')]
  if (before.length === 1 && after.length === 1) return difference
  const start = sameFromTheFirst(before, after)
  const rest = Math.min(before.length, after.length) - start
  const end = Math.min(rest, sameFromTheFirst(before.toReversed(), after.toReversed()))
  const changed = (lines: readonly string[]): string | undefined => {
    const own = lines.slice(start, lines.length - end)
    return own.length === 0 ? undefined : own.join('\n')
  }
  return { path: `${path}, from line ${start + 1}`, recorded: changed(before), happened: changed(after) }
}

/** How many lines two texts begin with alike. */
function sameFromTheFirst(a: readonly string[], b: readonly string[]): number {
  const changed = a.findIndex((line, index) => line !== b[index])
  return changed === -1 ? a.length : changed
}

/** Items that have names are compared by them: whatever comes in or goes away moves none of the others. */
function listDifferences(
  recorded: readonly unknown[],
  happened: readonly unknown[],
  path: string,
): readonly Difference[] {
  const [before, after] = [byName(recorded), byName(happened)]
  if (before === undefined || after === undefined) {
    const length = Math.max(recorded.length, happened.length)
    return Array.from({ length }, (_, index) => index).flatMap((index) =>
      differencesOf(recorded[index], happened[index], `${path}[${index}]`),
    )
  }
  const [namesBefore, namesAfter] = [[...before.keys()], [...after.keys()]]
  const found = [...new Set([...namesBefore, ...namesAfter])].flatMap((name) =>
    differencesOf(before.get(name), after.get(name), `${path}[${name}]`),
  )
  const moved = found.length === 0 && namesBefore.join() !== namesAfter.join()
  return moved ? [{ path: `${path}, in order`, recorded: namesBefore, happened: namesAfter }] : found
}

/** Items by their names; `undefined` where not each has one of its own. */
function byName(items: readonly unknown[]): ReadonlyMap<string, unknown> | undefined {
  const named = new Map<string, unknown>()
  for (const item of items) {
    if (!isContainer(item) || typeof item['name'] !== 'string' || named.has(item['name'])) return undefined
    named.set(item['name'], item)
  }
  return named
}

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
