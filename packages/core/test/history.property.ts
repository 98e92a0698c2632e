import * as fc from 'fast-check'
import '../../../scripts/testing/seed.ts'
import { describe, expect, it } from 'vitest'
import type { Message } from '@tallystick/core'
import {
  appendMessage,
  emptyHistory,
  emptyHistoryDigest,
  historyDigest,
  messageAt,
  messagesOf,
  type History,
} from '../src/machine/messages/history.ts'
import { digestOf } from '../src/vocabulary/values/digest.ts'

const message = (text: string): Message => ({ role: 'user', parts: [{ type: 'text', text }] })

/** A tree of conversations: each step grows one of the histories that are there by one message. */
const growth = fc.array(fc.record({ from: fc.nat(), text: fc.string({ maxLength: 3 }) }), { maxLength: 40 })

interface Grown {
  readonly history: History
  readonly messages: readonly Message[]
}

function grow(steps: readonly { readonly from: number; readonly text: string }[]): readonly Grown[] {
  const all: Grown[] = [{ history: emptyHistory(), messages: [] }]
  for (const { from, text } of steps) {
    const { history, messages } = all[from % all.length]!
    all.push({ history: appendMessage(history, message(text)), messages: [...messages, message(text)] })
  }
  return all
}

/** The digest of the same messages, put together from nothing. */
function digestFresh(messages: readonly Message[]): string {
  return historyDigest(messages.reduce(appendMessage, emptyHistory()))
}

describe('a history', () => {
  it('holds what was said in it, whatever was said in others that began as it did', () => {
    fc.assert(
      fc.property(growth, (steps) => {
        for (const { history, messages } of grow(steps)) {
          expect(history.length).toBe(messages.length)
          expect(messagesOf(history)).toEqual(messages)
          expect(messageAt(history, messages.length - 1)).toEqual(messages.at(-1))
          expect(messageAt(history, messages.length)).toBeUndefined()
        }
      }),
    )
  })

  it('has a digest of its messages alone, whenever and in whatever order it is asked for', () => {
    fc.assert(
      fc.property(growth, fc.array(fc.nat(), { maxLength: 20 }), (steps, asked) => {
        const all = grow(steps)
        for (const place of asked) {
          const { history, messages } = all[place % all.length]!
          expect(historyDigest(history)).toBe(digestFresh(messages))
        }
      }),
    )
  })

  it('begins with the digest of a text that names how digests are made', () => {
    expect(emptyHistoryDigest).toBe(digestOf('tallystick history 1'))
    expect(historyDigest(emptyHistory())).toBe(emptyHistoryDigest)
  })

  it('has another digest for every other conversation', () => {
    const texts = fc.array(fc.string({ maxLength: 2 }), { maxLength: 4 })
    fc.assert(
      fc.property(texts, texts, (one, other) => {
        const same = JSON.stringify(one) === JSON.stringify(other)
        const [first, second] = [one, other].map((list) => digestFresh(list.map(message)))
        expect(first === second).toBe(same)
      }),
    )
  })

  it('shares its store with what grows from it, so that a turn costs what it adds', () => {
    const first = appendMessage(emptyHistory(), message('one'))
    const second = appendMessage(first, message('two'))
    expect(second.store).toBe(first.store)
    const fork = appendMessage(first, message('other'))
    expect(fork.store).not.toBe(first.store)
    expect([messagesOf(second), messagesOf(fork), messagesOf(first)]).toEqual([
      [message('one'), message('two')],
      [message('one'), message('other')],
      [message('one')],
    ])
  })

  it('hands out arrays that no later message gets into', () => {
    const first = appendMessage(emptyHistory(), message('one'))
    const shown = messagesOf(first)
    appendMessage(first, message('two'))
    expect(shown).toEqual([message('one')])
  })
})
