import { describe, expect, it } from 'vitest'
import {
  computeAnswerDigest,
  readCalls,
  emptyCallLog,
  logCall,
  getLongestStreak,
  listSameAnswers,
  type LoggedCall,
} from '../src/machine/history.ts'
import { callId } from './pages.ts'

const logged = (ordinal: number, resultDigest = 'a', inputDigest = 'd'): LoggedCall => ({
  ...{ toolCallId: callId(ordinal), name: 'look', inputDigest, resultDigest },
  result: { toolCallId: callId(ordinal), name: 'look', outcome: 'success', content: [] },
})
const same = (log: Parameters<typeof readCalls>[0]): readonly string[] =>
  listSameAnswers(log, { name: 'look', inputDigest: 'd' }).map(({ toolCallId }) => toolCallId)

describe('a log of calls', () => {
  it('stays as it is when another one grows from it', () => {
    const one = logCall(emptyCallLog, logged(1))
    const grown = logCall(one, logged(2))
    expect([readCalls(one), readCalls(grown)]).toEqual([[logged(1)], [logged(1), logged(2)]])
    expect([same(one), same(grown)]).toEqual([[callId(1)], [callId(2), callId(1)]])
    const sibling = logCall(one, logged(3))
    expect(readCalls(sibling)).toEqual([logged(1), logged(3)])
    expect([same(sibling), same(grown), same(one)]).toEqual([
      [callId(3), callId(1)],
      [callId(2), callId(1)],
      [callId(1)],
    ])
    expect(readCalls(logCall(sibling, logged(4)))).toEqual([logged(1), logged(3), logged(4)])
  })

  it('of a run that has called nothing stays empty, whatever other runs call', () => {
    const [one, two] = [logCall(emptyCallLog, logged(1)), logCall(emptyCallLog, logged(2))]
    expect([readCalls(one), readCalls(two), readCalls(emptyCallLog)]).toEqual([[logged(1)], [logged(2)], []])
    expect([same(one), same(emptyCallLog)]).toEqual([[callId(1)], []])
  })

  it('finds equal calls from the last backwards, up to another answer', () => {
    const log = [logged(1), logged(2, 'b'), logged(3, 'b', 'other'), logged(4, 'b')].reduce(
      logCall,
      emptyCallLog,
    )
    expect(same(log)).toEqual([callId(4), callId(2)])
    expect(same(emptyCallLog)).toEqual([])
  })

  it('compares answers by what they say where no digest is given, and with those that have one', () => {
    const answered = (ordinal: number, text: string): LoggedCall => {
      const { resultDigest: _none, result, ...call } = logged(ordinal)
      return { ...call, result: { ...result, content: [{ type: 'text', text }] } }
    }
    const log = [answered(1, 'other'), answered(2, 'same'), answered(3, 'same')].reduce(logCall, emptyCallLog)
    expect(same(log)).toEqual([callId(3), callId(2)])
    expect(getLongestStreak(log)).toBe(2)
    const digest = computeAnswerDigest('success', [{ type: 'text', text: 'same' }])
    const more = logCall(log, logged(4, digest))
    expect(same(more)).toEqual([callId(4), callId(3), callId(2)])
    expect(getLongestStreak(more)).toBe(3)
  })
})
