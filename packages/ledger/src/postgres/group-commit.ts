/** One append that waits for its turn. */
export interface Queued {
  readonly runId: string
  /** Rows and bytes that it adds to a group. */
  readonly events: number
  readonly bytes: number
}

/** What a group may hold; one append alone may be larger. */
const maxRuns = 64
const maxEvents = 1_024
const maxBytes = 4 * 1024 * 1024

interface Waiting<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/**
 * Lets appends of many runs share statements and commits. No append waits for others to join it: while all lanes are
 * busy, new appends queue up, and the next free lane takes all queued ones as one group. Each run has one append
 * under way at a time, so that groups of one process never wait for each other.
 */
export class GroupCommit<Item extends Queued, Result> {
  readonly #commit: (group: readonly Item[]) => Promise<readonly Result[]>
  readonly #lanes: number
  readonly #busyRuns = new Set<string>()
  #waiting: Waiting<Item, Result>[] = []
  #busyLanes = 0

  /** `commit` answers for each append of a group in its order; where it rejects for several, it is asked one by one. */
  constructor(lanes: number, commit: (group: readonly Item[]) => Promise<readonly Result[]>) {
    this.#lanes = lanes
    this.#commit = commit
  }

  submit(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      this.#fill()
    })
  }

  #fill(): void {
    while (this.#busyLanes < this.#lanes) {
      const group = this.#nextGroup()
      if (group.length === 0) return
      this.#busyLanes++
      for (const { item } of group) this.#busyRuns.add(item.runId)
      void this.#carryOut(group).finally(() => {
        this.#busyLanes--
        for (const { item } of group) this.#busyRuns.delete(item.runId)
        this.#fill()
      })
    }
  }

  #nextGroup(): readonly Waiting<Item, Result>[] {
    const group: Waiting<Item, Result>[] = []
    const left: Waiting<Item, Result>[] = []
    const runs = new Set<string>()
    let [events, bytes] = [0, 0]
    for (const waiting of this.#waiting) {
      const { item } = waiting
      const fits =
        group.length === 0 ||
        (group.length < maxRuns && events + item.events <= maxEvents && bytes + item.bytes <= maxBytes)
      if (!fits || runs.has(item.runId) || this.#busyRuns.has(item.runId)) left.push(waiting)
      else {
        group.push(waiting)
        events += item.events
        bytes += item.bytes
      }
      // What comes later of the same run waits for what came before.
      runs.add(item.runId)
    }
    this.#waiting = left
    return group
  }

  async #carryOut(group: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#commit(group.map(({ item }) => item))
      for (const [index, { resolve }] of group.entries()) resolve(results[index] as Result)
    } catch (error) {
      const [only, ...others] = group
      if (only && others.length === 0) return only.reject(error)
      // One of them is at fault, and the others must not suffer for it.
      for (const waiting of group) await this.#carryOut([waiting])
    }
  }
}

/** The types of elements, as the catalogue of every Postgres numbers them. */
const elementTypes = { int8: 20, text: 25 } as const

const headBytes = 20
const lengthBytes = 4
const int8Bytes = 8

/** An array parameter in the binary form of the protocol, which takes less time than text on both sides. */
function arrayHead(type: keyof typeof elementTypes, count: number, bytes: number): Buffer {
  const array = Buffer.allocUnsafe(headBytes + bytes)
  // One dimension, no flag, the type, and of the dimension its length and where it begins.
  array.writeInt32BE(1, 0)
  array.writeInt32BE(0, 4)
  array.writeInt32BE(elementTypes[type], 8)
  array.writeInt32BE(count, 12)
  array.writeInt32BE(1, 16)
  return array
}

/** Whole numbers, of which each is a safe integer, and nulls. */
export function int8Array(values: readonly (number | null)[]): Buffer {
  const nulls = values.filter((value) => value === null).length
  const array = arrayHead(
    'int8',
    values.length,
    values.length * (lengthBytes + int8Bytes) - nulls * int8Bytes,
  )
  let offset = headBytes
  if (nulls > 0) array.writeInt32BE(1, 4)
  for (const value of values) {
    if (value === null) {
      offset = array.writeInt32BE(-1, offset)
      continue
    }
    const high = Math.floor(value / 2 ** 32)
    offset = array.writeInt32BE(int8Bytes, offset)
    offset = array.writeInt32BE(high, offset)
    offset = array.writeUInt32BE(value - high * 2 ** 32, offset)
  }
  return array
}

/** Encodes texts and nulls. */
export function textArray(values: readonly (string | null)[]): Buffer {
  let bytes = 0
  for (const value of values) bytes += lengthBytes + (value === null ? 0 : Buffer.byteLength(value))
  const array = arrayHead('text', values.length, bytes)
  let offset = headBytes
  for (const value of values) {
    const length = value === null ? -1 : array.write(value, offset + lengthBytes)
    array.writeInt32BE(length, offset)
    offset += lengthBytes + Math.max(length, 0)
    if (value === null) array.writeInt32BE(1, 4)
  }
  return array
}
