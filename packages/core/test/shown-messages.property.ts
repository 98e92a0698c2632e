// What a turn shows instead of the history is recorded as what differs from it, and gives the same messages again.
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Message } from '@tallystick/core'
import { readShownMessages, toShownMessages } from '@tallystick/core/internal'
import { tries } from '../../../scripts/testing/effort.ts'
import {
  appendMessage,
  createHistory,
  type History,
  computeHistoryDigests,
  withShownDigest,
} from '../src/machine/history.ts'
import type { ShownPiece } from '../src/events/event.ts'

const said = (text: string): Message => ({ role: 'user', parts: [{ type: 'text', text }] })

function toHistory(texts: readonly string[]): History {
  return texts.reduce((history, text) => appendMessage(history, said(text)), createHistory([]))
}

type Edit = { readonly kind: 'keep' | 'copy' | 'drop' | 'mask' | 'insert' | 'last' }
const kinds = ['keep', 'copy', 'drop', 'mask', 'insert', 'last'] as const

/** What a filter makes of messages: each of them is kept, copied, left out, masked, preceded by another, or said again. */
function filtered(messages: readonly Message[], edits: readonly Edit[]): readonly Message[] {
  return messages.flatMap((message, place) => {
    switch (edits[place % edits.length]?.kind) {
      case 'copy':
        return [structuredClone(message)]
      case 'drop':
        return []
      case 'mask':
        return [said('***')]
      case 'insert':
        return [said(`note ${place}`), message]
      case 'last':
        return [message, messages.at(-1)!]
      case 'keep':
      case undefined:
        return [message]
    }
  })
}

it('gives again what was shown, under the digest of all of it', () => {
  const edits = fc.array(fc.record({ kind: fc.constantFrom(...kinds) }), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 2 }), { maxLength: 12 }), edits, (texts, edited) => {
      const history = toHistory(texts)
      const all = readShownMessages(history, {})
      const wanted = filtered(all, edited)
      const shown = toShownMessages(history, wanted)
      expect(readShownMessages(history, shown ? { shown } : {})).toEqual(wanted)
      if (shown === undefined) return
      expect(shown.digest).toBe(
        computeHistoryDigests(wanted).at(-1) ?? computeHistoryDigests([]).at(-1) ?? shown.digest,
      )
      expect(withShownDigest(history, { shown })).toEqual({ shown })
    }),
    { numRuns: tries(150) },
  )
})

const [one, two, three] = [said('1'), said('2'), said('3')]
const history = toHistory(['1', '2', '3'])
const [first, second, third] = readShownMessages(history, {}) as [Message, Message, Message]

it.each<readonly [string, readonly Message[], readonly ShownPiece[] | undefined]>([
  ['nothing, where all of it is shown', [first, second, third], undefined],
  ['nothing, where copies of all of it are shown', [one, two, three], undefined],
  ['a range, where the last are shown', [second, third], [{ from: 1, to: 3 }]],
  ['a range, where the first are shown', [first, second], [{ from: 0, to: 2 }]],
  [
    'what takes the place of one, between the others',
    [first, said('*'), three],
    [{ from: 0, to: 1 }, { messages: [said('*')] }, { from: 2, to: 3 }],
  ],
  [
    'what comes before the rest, at once',
    [said('a'), said('b'), first, second, third],
    [{ messages: [said('a'), said('b')] }, { from: 0, to: 3 }],
  ],
  [
    'another order',
    [third, first],
    [
      { from: 2, to: 3 },
      { from: 0, to: 1 },
    ],
  ],
  ['no message', [], []],
])('records %s', (_what, messages, pieces) => {
  expect(toShownMessages(history, messages)?.pieces).toEqual(pieces)
})

it('names another digest where the history is another one', () => {
  const shown = toShownMessages(history, [second, third])!
  const other = toHistory(['1', 'two', '3'])
  expect(withShownDigest(other, { shown }).shown?.digest).not.toBe(shown.digest)
  expect(withShownDigest(history, { instructions: 'x' })).toEqual({ instructions: 'x' })
})
