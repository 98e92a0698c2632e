import * as fc from 'fast-check'
import '../../../scripts/testing/seed.ts'
import { describe, expect, it } from 'vitest'
import type { Message } from '@tallystick/core'
import {
  appendMessage,
  digestBeginning,
  freezeMessages,
  computeDigestAfter,
  emptyHistoryDigest,
  type History,
  computeHistoryDigest,
  computeHistoryDigests,
  findHistoryFault,
  createHistory,
  countHistoryTokens,
  getMessage,
  readMessages,
  findPairingFault,
  withDigests,
} from '../src/machine/history.ts'
import { estimateMessageTokens } from '../src/machine/tokens.ts'
import { computeDigest } from '../src/values/digest.ts'

const message = (text: string): Message => ({ role: 'user', parts: [{ type: 'text', text }] })

const model = { provider: 'scripted', api: 'script', modelId: 'scripted-1' }

/** Messages that may follow each other, or may not. */
const anyMessage = fc.oneof(
  fc.constantFrom('a', 'bc').map(message),
  fc.subarray(['1', '2']).map((ids): Message => ({
    ...{ role: 'assistant', model, stopReason: 'end', partial: false },
    parts: ids.map((id) => ({
      ...{ type: 'tool_call', toolCallId: id as never, providerCallId: id, name: 'look', input: {} },
    })),
  })),
  fc.subarray(['1', '2'], { minLength: 1 }).map((ids): Message => ({
    role: 'tool',
    results: ids.map((id) => ({ toolCallId: id as never, name: 'look', outcome: 'success', content: [] })),
  })),
)

/** A tree of conversations: each step grows one of the histories that are there by one message. */
const growth = fc.array(fc.record({ from: fc.nat(), text: fc.string({ maxLength: 3 }) }), { maxLength: 40 })

interface Grown {
  readonly history: History
  readonly messages: readonly Message[]
}

function grow(steps: readonly { readonly from: number; readonly text: string }[]): readonly Grown[] {
  const all: Grown[] = [{ history: createHistory([]), messages: [] }]
  for (const { from, text } of steps) {
    const { history, messages } = all[from % all.length]!
    all.push({ history: appendMessage(history, message(text)), messages: [...messages, message(text)] })
  }
  return all
}

/** The digest of the same messages, put together from nothing. */
function digestFresh(messages: readonly Message[]): string {
  return computeHistoryDigest(messages.reduce(appendMessage, createHistory([])))
}

describe('a history', () => {
  it('holds what was said in it, whatever was said in others that began as it did', () => {
    fc.assert(
      fc.property(growth, (steps) => {
        for (const { history, messages } of grow(steps)) {
          expect(history.length).toBe(messages.length)
          expect(readMessages(history)).toEqual(messages)
          expect(getMessage(history, messages.length - 1)).toEqual(messages.at(-1))
          expect(getMessage(history, messages.length)).toBeUndefined()
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
          expect(computeHistoryDigest(history)).toBe(digestFresh(messages))
        }
      }),
    )
  })

  it('begins with the digest of a text that names how digests are made', () => {
    expect(emptyHistoryDigest).toBe(computeDigest('tallystick history 1'))
    expect(computeHistoryDigest(createHistory([]))).toBe(emptyHistoryDigest)
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
    const first = appendMessage(createHistory([]), message('one'))
    const second = appendMessage(first, message('two'))
    expect(second.store).toBe(first.store)
    const fork = appendMessage(first, message('other'))
    expect(fork.store).not.toBe(first.store)
    expect([readMessages(second), readMessages(fork), readMessages(first)]).toEqual([
      [message('one'), message('two')],
      [message('one'), message('other')],
      [message('one')],
    ])
  })

  it('hands out arrays that no later message gets into', () => {
    const first = appendMessage(createHistory([]), message('one'))
    const shown = readMessages(first)
    appendMessage(first, message('two'))
    expect(shown).toEqual([message('one')])
  })

  it('is as sound, and worth as many tokens, as its messages are, whatever is known of others of its growth', () => {
    const steps = fc.array(fc.record({ from: fc.nat(2), said: anyMessage }), { maxLength: 20 })
    fc.assert(
      fc.property(steps, fc.array(fc.nat(), { maxLength: 30 }), (grown, asked) => {
        const all = [createHistory([])]
        // Most often the newest grows.
        for (const { from, said } of grown) all.push(appendMessage(all.at(-1 - from) ?? all[0]!, said))
        for (const place of asked) {
          const history = all[place % all.length]!
          const messages = readMessages(history)
          expect(findHistoryFault(history)).toBe(findPairingFault(messages))
          expect(countHistoryTokens(history)).toBe(
            messages.reduce((sum, each) => sum + estimateMessageTokens(each), 0),
          )
        }
      }),
    )
  })

  it('is known again by the arrays that were made of it, and by the beginnings of those', () => {
    fc.assert(
      fc.property(growth, fc.array(fc.nat(), { maxLength: 10 }), (steps, asked) => {
        const all = grow(steps)
        for (const place of asked) {
          const { history, messages } = all[place % all.length]!
          const carried = freezeMessages(history)
          expect(carried).toEqual(messages)
          expect([carried, ...carried].every(Object.isFrozen)).toBe(true)
          expect(createHistory(carried)).toEqual(history)
          expect(computeHistoryDigests(carried)).toEqual(
            messages.map((_, at) => digestFresh(messages.slice(0, at + 1))),
          )
          const length = place % (messages.length + 1)
          const beginning = digestBeginning(carried, length)
          expect(beginning).toEqual(messages.slice(0, length))
          expect(createHistory(beginning).store).toBe(history.store)
          const others = messages.slice(length)
          expect(computeDigestAfter(history, length, others)).toBe(computeHistoryDigest(history))
          const read = withDigests(others, computeHistoryDigests(carried).slice(length), beginning)
          expect([read, createHistory(read)]).toEqual([messages, history])
          expect(createHistory(read).store).toBe(history.store)
        }
      }),
    )
  })

  it('of messages that others hold does not change with them', () => {
    const said = { role: 'user' as const, parts: [{ type: 'text' as const, text: 'one' }] }
    const carried = freezeMessages(createHistory([said]))
    said.parts[0]!.text = 'changed'
    expect(carried).toEqual([message('one')])
  })

  it('shares what was said again by a run that is read again', () => {
    const first = appendMessage(createHistory([]), message('one'))
    const live = appendMessage(first, message('two'))
    const again = appendMessage(first, message('two'))
    expect([again.store === live.store, again.length]).toEqual([true, 2])
    expect(appendMessage(first, message('other')).store).not.toBe(live.store)
  })
})
