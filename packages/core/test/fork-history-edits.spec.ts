// What a fork changes in the history of the events that it shares: where it may, and in which order it is recorded.
import { describe, expect, it } from 'vitest'
import { ConfigurationError } from '@tallystick/core'
import { sampleMessage } from '@tallystick/testkit'
import { createHistory } from '../src/machine/history.ts'
import { toEditFacts, type ForkEdit } from '../src/runtime/fork.ts'
import { stateOf } from './actions.ts'
import { answered, begun, called, replyFinished, requested } from './pages.ts'

const reply = { role: 'assistant', parts: [], model: {}, stopReason: 'end', partial: false }
const messages = [sampleMessage('One'), reply, sampleMessage('Two'), reply] as never
const calls = [requested(1)]
const pages = {
  collecting: answered('end'),
  streaming: [...begun(), called()],
  checking: [...begun(), called(), ...calls, replyFinished(calls)],
}

function facts(edit: ForkEdit, page: keyof typeof pages = 'collecting'): unknown {
  const state = { ...stateOf(pages[page]), history: createHistory(messages) }
  return toEditFacts(edit, { state, source: state })
}

describe('the history of a fork', () => {
  const edited = (edits: readonly object[], more: object = {}) => [
    { type: 'history_edited', turn: 1, edits, ...more },
  ]
  const [one, two] = [sampleMessage('First'), sampleMessage('Second')]

  it('is edited in the order of its messages, and says who did it', () => {
    const history = [
      { index: 2, message: two },
      { index: 0, message: one },
    ]
    expect(facts({ history, by: 'ada', reason: 'A test.' })).toEqual(
      edited(history.toReversed(), { by: 'ada', reason: 'A test.' }),
    )
  })

  it('has another input in the place of the last message of the user', () => {
    const history = [{ index: 0, message: one }]
    expect(facts({ input: 'Second', history })).toEqual(edited([...history, { index: 2, message: two }]))
    expect(facts({ input: [{ type: 'text', text: 'Second' }] })).toEqual(edited([{ index: 2, message: two }]))
  })

  it('is not edited where nothing is asked', () => {
    expect(facts({})).toEqual([])
    expect(facts({ history: [] }, 'streaming')).toEqual([])
  })

  it.each(['streaming', 'checking'] as const)('is not edited in the middle of a turn: %s', (page) => {
    expect(() => facts({ input: 'x' }, page)).toThrow(ConfigurationError)
    expect(() => facts({ input: 'x' }, page)).toThrow(/is in the middle of a turn \((streaming|collecting)\)/)
  })

  it('has no result and no decision for a call that is not under way there', () => {
    expect(() => facts({ results: [{ toolCallId: 'c', content: 'x' }] })).toThrow(
      /Tool call c is not a started call without a result at event \d+/,
    )
    expect(() => facts({ approvals: [{ toolCallId: 'c', by: 'ada', approved: true }] })).toThrow(
      /Tool call c waits for no approval at event \d+/,
    )
  })
})
