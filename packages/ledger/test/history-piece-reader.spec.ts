import { describe, expect, it } from 'vitest'
import { HistoryPieceReader } from '../src/content/event/history-piece-reader.ts'
import { restoredHistory, storedHistory, type HistoryPiece } from '../src/content/payload/stored-history.ts'
import { sampleMessage } from '@tallystick/core/testing'

const mebibyte = 1024 * 1024

/** A reader of pieces that are named by numbers, each after the one before, and what it asked of the store. */
function reading(sizes: readonly number[]) {
  const asked: string[] = []
  const stored = new Map(
    sizes.map((size, index): [string, HistoryPiece] => {
      const before = index === 0 ? null : `${index}`
      return [`${index + 1}`, { name: `${index + 1}`, before, body: new Uint8Array(size) }]
    }),
  )
  const chainTo = (name: string): readonly HistoryPiece[] => {
    const piece = stored.get(name)
    return piece === undefined ? [] : [piece, ...(piece.before === null ? [] : chainTo(piece.before))]
  }
  const reader = new HistoryPieceReader({
    async piece(name) {
      asked.push(name)
      return stored.get(name)
    },
    async chain(name) {
      asked.push(`chain ${name}`)
      return chainTo(name)
    },
  })
  /** Reads what leads to these names; returns the names that it came to. */
  const read = async (...names: readonly string[]): Promise<readonly string[]> =>
    [...(await reader.pieces(names)).keys()].toSorted()
  return { reader, read, asked: () => asked.splice(0) }
}

/** Pieces without one before them. */
function apart(...sizes: readonly number[]) {
  const asked: string[] = []
  const reader = new HistoryPieceReader({
    async piece(name) {
      asked.push(name)
      const body = new Uint8Array(sizes[Number(name) - 1] ?? 0)
      return { name, before: null, body }
    },
    chain: () => Promise.reject(new Error('nothing comes before')),
  })
  /** Reads pieces one after the other; returns which of them the store was asked for. */
  const read = async (...names: readonly number[]): Promise<readonly string[]> => {
    for (const name of names) await reader.pieces([`${name}`])
    return asked.splice(0)
  }
  return { reader, read }
}

describe('pieces of histories', () => {
  it('are read with all that comes before them: the last alone, and the rest at once', async () => {
    const { read, asked } = reading([1, 1, 1, 1])
    expect(await read('3')).toEqual(['1', '2', '3'])
    expect(asked()).toEqual(['3', 'chain 2'])
    expect(await read('4')).toEqual(['1', '2', '3', '4'])
    expect(asked()).toEqual(['4'])
    expect(await read('2', '4', '9')).toEqual(['1', '2', '3', '4'])
    expect(asked()).toEqual(['9'])
  })

  it('are read from the store again once they are forgotten', async () => {
    const { reader, read, asked } = reading([1, 1])
    await read('2')
    asked()
    reader.forget()
    expect(await read('2')).toEqual(['1', '2'])
    expect(asked()).toEqual(['2', 'chain 1'])
  })

  it('are the same ones as long as they are remembered, also where all that comes before is read', async () => {
    const stored = (name: string, before: string | null): HistoryPiece => ({
      name,
      before,
      body: new Uint8Array(1),
    })
    const reader = new HistoryPieceReader({
      piece: async (name) => stored(name, name === '1' ? null : `${Number(name) - 1}`),
      chain: async (name) =>
        Array.from({ length: Number(name) }, (_, index) => stored(`${index + 1}`, `${index}`)),
    })
    const first = await reader.pieces(['1'])
    const all = await reader.pieces(['3'])
    expect([...all.keys()].toSorted()).toEqual(['1', '2', '3'])
    expect(all.get('1')).toBe(first.get('1'))
    expect((await reader.pieces(['3'])).get('2')).toBe(all.get('2'))
  })

  it('are read back to the one that was opened last', async () => {
    const messages = ['a', 'b', 'c', 'd'].map((text) => sampleMessage(text))
    const piece = (length: number): HistoryPiece =>
      storedHistory(messages.slice(0, length), { subject: 'An event', sealer: undefined }).piece(length - 1)
    const stored = new Map([1, 2, 3, 4].map(piece).map((each) => [each.name, each]))
    const [, , third = '', fourth = ''] = [...stored.keys()]
    const asked: string[] = []
    const reader = new HistoryPieceReader({
      piece: async (name) => {
        asked.push(name)
        return stored.get(name)
      },
      chain: async () => [...stored.values()].slice(0, 2),
    })
    const restored = async (name: string) => restoredHistory(name, await reader.pieces([name]), undefined)
    expect(await restored(third)).toEqual(messages.slice(0, 3))
    expect([...(await reader.pieces([fourth])).keys()]).toEqual([fourth, third])
    expect(await restored(fourth)).toEqual(messages)
    expect([...(await reader.pieces([fourth])).keys()]).toEqual([fourth])
    expect(await restored(third)).toEqual(messages.slice(0, 3))
    expect(asked).toEqual([third, fourth])
  })

  it('of one conversation go at once, the one that was read last stays longest', async () => {
    const stored = (name: string, before: string | null): HistoryPiece => ({
      ...{ name, before, body: new Uint8Array(7 * mebibyte) },
    })
    const befores = new Map<string, string | null>([
      ['a', null],
      ['b', 'a'],
      ['x', null],
    ])
    const asked: string[] = []
    const reader = new HistoryPieceReader({
      piece: async (name) => {
        asked.push(name)
        return stored(name, befores.get(name) ?? null)
      },
      chain: async (name) => [stored(name, null)],
    })
    await reader.pieces(['b'])
    await reader.pieces(['x'])
    await reader.pieces(['a'])
    expect(asked).toEqual(['b', 'x', 'a'])
  })

  it('that were forgotten take no room', async () => {
    const { read, reader } = apart(8 * mebibyte, 8 * mebibyte)
    for (let times = 0; times < 3; times++) {
      expect(await read(1, 2, 1, 2)).toEqual(['1', '2'])
      reader.forget()
    }
  })

  it('are remembered up to 16 MiB, those that were read last', async () => {
    const { read } = apart(8 * mebibyte, 8 * mebibyte, 1, 8 * mebibyte)
    expect(await read(1, 2, 1, 2)).toEqual(['1', '2'])
    // The first was read last.
    expect(await read(1, 3, 1, 3, 2)).toEqual(['3', '2'])
    expect(await read(4, 2)).toEqual(['4'])
    expect(await read(1)).toEqual(['1'])
  })

  it('that are larger than that are not remembered, and nothing else is lost by much', async () => {
    const { read } = apart(17 * mebibyte, mebibyte)
    expect(await read(1, 1)).toEqual(['1', '1'])
    expect(await read(2, 2)).toEqual(['2'])
  })
})
