import type { Message, RuntimeEvent } from '@tallystick/core'
import { emptyHistoryDigest, historyDigests } from '@tallystick/core/machine'
import { everyFact, sampleMessage, sampleRunId, stamped } from '@tallystick/core/testing'
import { canonicalJson, type Json, type JsonObject } from '@tallystick/core/vocabulary'
import { createHash } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { storedBody } from '../src/content/event/stored-body.ts'
import { Sealer } from '../src/content/payload/encrypted-bytes.ts'
import {
  externalizedPayload,
  largeBytesMin,
  parseReferring,
  putBack,
  referringText,
} from '../src/content/payload/externalized-payload.ts'
import {
  hashed,
  isNamedRight,
  isOpened,
  restoredHistory,
  sharedLength,
  storedHistory,
  type HistoryPiece,
} from '../src/content/payload/stored-history.ts'

const key = { id: 'k1', bytes: Uint8Array.from({ length: 32 }, (_, index) => index) }
const sealer = new Sealer(key)
const bytes = (text: string): Uint8Array => Buffer.from(text)
const hex = (of: Uint8Array): string => Buffer.from(of).toString('hex')

describe('sealed bytes', () => {
  it('are the same ones in every release: a store holds them for years', () => {
    const [event] = stamped(sampleRunId(1), [everyFact(sampleRunId(1)).cancel_requested])
    expect(hex(storedBody(event as RuntimeEvent, sealer).bytes)).toBe(
      '01000000357b226b657074223a7b226279223a22616461222c22726561736f6e223a225b72656d6f7665645d227d2c226b6579223a226b31227dfff1c4038d3292e7ac6d093e52d92babb363ab2c775b5505779c1a5684e6b502418b4a181882c6d8c5b9da72cb1330d0a56a879507050d0bc31b3a',
    )
    expect(sealer.id).toBe('k1')
    expect(hex(sealer.seal(bytes('said'), bytes('place')))).toBe(
      '26fb9b2657419c261be507e657ef637b0d2c9bf9222a2a7106be1667d8b5e09d',
    )
    expect(hex(sealer.seal(bytes(''), bytes('')))).toBe(
      '0b9b13ec07cb784ac91bb20c04d160976545dc972282faecb6699aba',
    )
    expect(sealer.name('a digest')).toBe('1c20c8b539ef6ff277c38597f135ce45f3d7a76db418a77f29dcd8cb0f65a1d7')
  })

  it('have a nonce of their own for each pair of place and bytes', () => {
    const nonces = [
      ['ab', 'c'],
      ['a', 'bc'],
      ['abc', ''],
      ['', 'abc'],
    ].map(([place = '', said = '']) => hex(sealer.seal(bytes(said), bytes(place)).subarray(0, 12)))
    expect(new Set(nonces).size).toBe(4)
  })

  it('are opened where they were sealed only', () => {
    const sealed = sealer.seal(bytes('said'), bytes('place'))
    expect(sealed.length).toBe(12 + 'said'.length + 16)
    expect(Buffer.from(sealer.open(sealed, bytes('place'))).toString()).toBe('said')
    const refused = 'unable to authenticate'
    expect(() => sealer.open(sealed, bytes('elsewhere'))).toThrow(refused)
    expect(() => new Sealer({ ...key, bytes: new Uint8Array(32) }).open(sealed, bytes('place'))).toThrow(
      refused,
    )
  })
})

describe('the large texts of a body', () => {
  const large = 'x'.repeat(largeBytesMin)

  it('are taken out at any depth, and named by their paths', () => {
    const body = { a: large, b: [1, { c: large }, 'small'], d: null, e: { f: [[large]] } }
    const { body: rest, large: taken } = externalizedPayload(body)
    expect(rest).toEqual({ a: '', b: [1, { c: '' }, 'small'], d: null, e: { f: [['']] } })
    expect(taken.map(({ path }) => path)).toEqual([['a'], ['b', 1, 'c'], ['e', 'f', 0, 0]])
    for (const { path, text } of taken) putBack(rest, path, text)
    expect(rest).toEqual(body)
  })

  it('that are put back are fields like any other, whatever their names', () => {
    const body = JSON.parse(`{"__proto__":"${large}","a":1}`) as JsonObject
    const { body: rest, large: taken } = externalizedPayload(body)
    const field = { enumerable: true, writable: true, configurable: true }
    expect(Object.getOwnPropertyDescriptors(rest)).toEqual({
      ['__proto__']: { value: '', ...field },
      a: { value: 1, ...field },
    })
    expect(taken.map(({ path }) => path)).toEqual([['__proto__']])
    putBack(rest, ['__proto__'], large)
    expect(Object.getOwnPropertyDescriptor(rest, '__proto__')).toEqual({ value: large, ...field })
  })

  it.each<readonly [string, Json, readonly (string | number)[]]>([
    ['of no name', { a: '' }, []],
    ['that is not there', { a: '' }, ['b']],
    ['that holds another text', { a: 'x' }, ['a']],
    ['that holds no text', { a: 0 }, ['a']],
    ['in nothing', { a: null }, ['a', 'b']],
    ['in a text', { a: '' }, ['a', 'b']],
    ['of what every object has', { a: {} }, ['a', 'constructor', 'name']],
    ['beyond a list', { a: [''] }, ['a', 1]],
  ])('are not put into a place %s', (_what, body, path) => {
    const before = canonicalJson(body)
    expect(() => putBack(body as JsonObject, path, 'text')).toThrow('no such place')
    expect(canonicalJson(body)).toBe(before)
  })

  it('are referred to in one form, with and without a history', () => {
    const references = [{ path: ['a', 0], digest: 'd' }]
    expect(referringText({ a: [''] }, { references })).toBe('[{"a":[""]},[[["a",0],"d"]]]')
    expect(referringText({ a: 1 }, { references: [], history: 'h' })).toBe('[{"a":1},[],"h"]')
    expect(parseReferring('[{"a":[""]},[[["a",0],"d"]]]')).toStrictEqual({ body: { a: [''] }, references })
    expect(parseReferring('[{"a":1},[],"h"]')).toStrictEqual({ body: { a: 1 }, references: [], history: 'h' })
  })
})

describe('what a run begins with', () => {
  const messages: readonly Message[] = ['a', 'b', 'c', 'd'].map((text) => sampleMessage(text))
  const digests = historyDigests(messages)
  const history = storedHistory(messages, { subject: 'An event', sealer: undefined })
  const sealed = storedHistory(messages, { subject: 'An event', sealer })
  const lines = (from: number): string =>
    messages
      .slice(from)
      .map((each) => canonicalJson(each))
      .join('\n')

  const named = (...pieces: readonly HistoryPiece[]): ReadonlyMap<string, HistoryPiece> =>
    new Map(pieces.map((piece) => [piece.name, piece]))

  it('is named by the running digest of its messages', () => {
    expect([1, 2, 3, 4].map((length) => history.nameOf(length))).toEqual(digests)
    expect(history).toMatchObject({ name: digests[3], length: 4 })
    expect(sealed.name).toBe(sealer.name(digests[3] as string))
    expect(storedHistory([], { subject: 'An event', sealer: undefined }).name).toBe(emptyHistoryDigest)
  })

  it('is stored from any message on, by the name of what comes before', () => {
    expect(history.piece(0)).toEqual({ name: digests[3], before: null, body: Buffer.from(lines(0)) })
    expect(history.piece(1)).toEqual({ name: digests[3], before: digests[0], body: Buffer.from(lines(1)) })
    expect(history.piece(3)).toEqual({ name: digests[3], before: digests[2], body: Buffer.from(lines(3)) })
    const piece = sealed.piece(2)
    expect([piece.before, piece.body[0]]).toEqual([sealer.name(digests[1] as string), 1])
    expect(
      Buffer.from(sealer.open(piece.body.subarray(1), bytes(`history ${piece.before}`))).toString(),
    ).toBe(lines(2))
    expect(Buffer.from(sealer.open(sealed.piece(0).body.subarray(1), bytes('history '))).toString()).toBe(
      lines(0),
    )
  })

  it('is kept with the digest of its bytes', () => {
    const piece = history.piece(0)
    expect(hashed(piece)).toEqual({ ...piece, digest: createHash('sha256').update(piece.body).digest('hex') })
  })

  it('is shared as far as a store has it, looked for from its end', () => {
    const asked: number[] = []
    const sharedWith = (...known: readonly number[]): number =>
      sharedLength(history, (name) => {
        const length = digests.indexOf(name) + 1
        asked.push(length)
        return known.includes(length)
      })
    expect(sharedWith(2, 1)).toBe(2)
    expect(asked.splice(0)).toEqual([4, 3, 2])
    expect(sharedWith(1)).toBe(1)
    expect(asked.splice(0)).toEqual([4, 3, 2, 1])
    expect(sharedWith()).toBe(0)
    expect(asked.splice(0)).toEqual([4, 3, 2, 1])
    expect(sharedWith(4)).toBe(4)
  })

  it.each([
    ['in the clear', undefined],
    ['sealed', sealer],
  ])('is restored from pieces of any length, %s', (_how, sealing) => {
    const prefix = (length: number) =>
      storedHistory(messages.slice(0, length), { subject: 'An event', sealer: sealing })
    for (const [first, second] of [
      [1, 2],
      [1, 4],
      [2, 3],
      [3, 4],
    ] as const) {
      const pieces = new Map(
        [prefix(first).piece(0), prefix(second).piece(first)].map((piece) => [piece.name, piece]),
      )
      expect(restoredHistory(prefix(second).name, pieces, sealing)).toEqual(messages.slice(0, second))
      // What two runs begin with.
      expect(restoredHistory(prefix(first).name, pieces, sealing)).toEqual(messages.slice(0, first))
    }
    const [a, b, c] = [prefix(1).piece(0), prefix(3).piece(1), prefix(4).piece(3)] as [
      HistoryPiece,
      HistoryPiece,
      HistoryPiece,
    ]
    expect(() => restoredHistory(c.name, named(c, b), sealing)).toThrow(`no history ${a.name}`)
    expect(restoredHistory(c.name, named(c, a, b), sealing)).toEqual(messages)
  })

  it('is restored without what comes before a piece that was opened, from its end and from its beginning', () => {
    const prefix = (length: number) =>
      storedHistory(messages.slice(0, length), { subject: 'An event', sealer: undefined })
    const other = storedHistory([...messages.slice(0, 2), sampleMessage('other')], {
      ...{ subject: 'An event', sealer: undefined },
    })
    const [a, b, c, branch] = [
      prefix(1).piece(0),
      prefix(2).piece(1),
      prefix(4).piece(2),
      other.piece(2),
    ] as const
    restoredHistory(b.name, named(a, b), undefined)
    expect([a, b, c].map(isOpened)).toEqual([true, true, false])
    expect(restoredHistory(c.name, named(b, c), undefined)).toEqual(messages)
    expect(restoredHistory(branch.name, named(b, branch), undefined)).toEqual([
      ...messages.slice(0, 2),
      sampleMessage('other'),
    ])
    expect(restoredHistory(c.name, named(c), undefined)).toEqual(messages)
    const [first] = restoredHistory(a.name, named(a), undefined)
    expect(restoredHistory(a.name, named(a), undefined)).toEqual([messages[0]])
    // Each message is in memory once.
    expect(restoredHistory(c.name, named(c), undefined)[0]).toBe(first)
    expect(restoredHistory(branch.name, named(branch), undefined)[0]).toBe(first)
  })

  it('is opened once for all events of a batch that begin with it', () => {
    const piece = sealed.piece(0)
    const open = vi.spyOn(sealer, 'open')
    const pieces = new Map([[piece.name, piece]])
    const [first, second] = [1, 2].map(() => restoredHistory(piece.name, pieces, sealer))
    expect(open).toHaveBeenCalledTimes(1)
    open.mockRestore()
    expect([first, second]).toEqual([messages, messages])
  })

  it('is damage where a piece goes round in a circle, or says something else than its name', () => {
    const [one, two] = [history.piece(0), { ...history.piece(0), name: 'two', before: digests[3] as string }]
    const circle = new Map([
      [one.name, { ...one, before: 'two' }],
      ['two', two],
    ])
    expect(() => restoredHistory('two', circle, undefined)).toThrow(/^no history /)
    const changed = { ...one, body: Buffer.from(lines(1)) }
    expect(() => restoredHistory(one.name, new Map([[one.name, changed]]), undefined)).toThrow(
      `the history ${one.name} has changed`,
    )
  })

  it('is judged by its name as far as it can be read without a key', () => {
    expect([history.piece(0), history.piece(1), history.piece(3)].map(isNamedRight)).toEqual([
      true,
      true,
      true,
    ])
    expect(isNamedRight({ ...history.piece(1), before: null })).toBe(false)
    expect(isNamedRight({ ...history.piece(0), name: digests[2] as string })).toBe(false)
    expect(isNamedRight({ ...history.piece(0), name: digests[0] as string })).toBe(false)
    expect(isNamedRight({ ...sealed.piece(0), name: 'anything' })).toBe(true)
    expect(isNamedRight({ ...history.piece(0), body: Uint8Array.of(2, 1) })).toBe(false)
    expect(isNamedRight({ ...history.piece(0), body: Uint8Array.of(0, 1) })).toBe(false)
  })
})
