// Values of the record as the page gets them: cut to what a view shows, so that no value is too large for a page.

/** A value in a tree of JSON. Children are asked for when it is opened. */
export interface ValueNode {
  readonly key: string
  readonly type: 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'
  /** The value, or the beginning of it. */
  readonly preview: string
  /** Characters of a text, entries of a list or an object. */
  readonly size: number
}

const maxPreview = 120
const maxChildren = 500

export function describeValue(key: string, value: unknown): ValueNode {
  if (value === null || value === undefined) return { key, type: 'null', preview: 'null', size: 0 }
  if (typeof value === 'string') {
    return { key, type: 'string', preview: value.slice(0, maxPreview), size: value.length }
  }
  if (typeof value === 'number' || typeof value === 'boolean') {
    return { key, type: typeof value as 'number' | 'boolean', preview: String(value), size: 0 }
  }
  if (Array.isArray(value)) return { key, type: 'array', preview: `[${value.length}]`, size: value.length }
  const keys = Object.keys(value)
  const preview = keys.slice(0, 5).join(', ') + (keys.length > 5 ? ', …' : '')
  return { key, type: 'object', preview: `{${preview}}`, size: keys.length }
}

/** The entries of a list or an object, the first 500 of them from `from`. */
export function listChildren(value: unknown, from: number = 0): readonly ValueNode[] {
  if (Array.isArray(value)) {
    return value
      .slice(from, from + maxChildren)
      .map((each, index) => describeValue(String(from + index), each))
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value)
    .slice(from, from + maxChildren)
    .map(([key, each]) => describeValue(key, each))
}

/** Finds what a path leads to. */
export function findValue(root: unknown, path: readonly string[]): unknown {
  let value = root
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

/** A place that differs between two values. */
export interface Change {
  readonly path: readonly string[]
  readonly before?: ValueNode
  readonly after?: ValueNode
}

const maxChanges = 200

/** The places in which two values differ, the first 200. What they share by identity is not looked at. */
export function listChanges(before: unknown, after: unknown): readonly Change[] {
  const changes: Change[] = []
  compare(before, after, [], changes)
  return changes
}

function compare(before: unknown, after: unknown, path: readonly string[], changes: Change[]): void {
  if (before === after || changes.length >= maxChanges) return
  if (Array.isArray(before) && Array.isArray(after)) {
    // A long history differs from the one before in its last entries: the others cost a look each, and no more.
    for (let index = 0; index < Math.max(before.length, after.length); index++) {
      if (before[index] === after[index]) continue
      compare(before[index], after[index], [...path, String(index)], changes)
    }
    return
  }
  if (isCompound(before) && isCompound(after) && Array.isArray(before) === Array.isArray(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      if (before[key] !== after[key]) compare(before[key], after[key], [...path, key], changes)
    }
    return
  }
  const key = path.at(-1) ?? ''
  changes.push({
    path,
    ...(before !== undefined && { before: describeValue(key, before) }),
    ...(after !== undefined && { after: describeValue(key, after) }),
  })
}

function isCompound(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** A text that may be cut, and how long it was. */
export interface CutText {
  readonly text: string
  readonly length: number
}

export function cutText(text: string, max: number = 4_000): CutText {
  return { text: text.slice(0, max), length: text.length }
}
