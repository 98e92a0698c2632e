// Pieces of text become events by a way of their own, which is shorter than that of other facts.
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { toEvent } from '@tallystick/core/internal'
import type { Fact } from '@tallystick/core/vocabulary'
import { tries } from '../../../scripts/testing/effort.ts'
import { runId } from './pages.ts'
import { anyText } from '../../../scripts/testing/any-text.ts'

const delta = fc.record(
  {
    type: fc.constantFrom('assistant_text_delta', 'assistant_reasoning_delta', 'tool_input_delta'),
    turn: fc.nat(),
    attempt: fc.nat(),
    part: fc.nat(),
    text: anyText(),
    replaces: fc.constant(true),
    written: fc.string(),
  },
  { requiredKeys: ['type', 'turn', 'attempt', 'part', 'text'] },
)

it('the event of any piece is who recorded it and when, then its fact, and is frozen', () => {
  const who = fc.record({ epoch: fc.nat(), seq: fc.nat(), at: fc.nat() })
  fc.assert(
    fc.property(delta, who, fc.boolean(), (given, { epoch, seq, at }, isUsual) => {
      const fact = given as Fact
      const cause = fact.type === 'assistant_text_delta' ? 'model_text' : 'model_reasoning'
      const usual = fact.type === 'tool_input_delta' ? 'model_tool_input' : cause
      const event = toEvent(fact, { runId, epoch, seq, at, cause: isUsual ? usual : 'resume' })
      const recorded = { runId, seq, epoch, at, v: 1, ...(!isUsual && { cause: 'resume' }), ...fact }
      expect(JSON.stringify(event)).toBe(JSON.stringify(recorded))
      expect(Object.isFrozen(event)).toBe(true)
    }),
    { numRuns: tries(300) },
  )
})
