import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent, Usage } from '@tallystick/core'
import { addUsage } from '@tallystick/core/vocabulary'
import { readSpans, toSpans, type Span } from '@tallystick/otel'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const numRuns = tries(200)

/** What is wrong with the spans of whole runs, as traces. */
function faultsOf(spans: readonly Span[]): readonly string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  const roots = spans.filter(({ parentSpanId }) => parentSpanId === undefined)
  const faults = byId.size === spans.length ? [] : ['a span has ended twice']
  if (new Set(spans.map(({ traceId }) => traceId)).size !== roots.length)
    faults.push('a trace has not one root')
  for (const span of spans) {
    const fault = faultOf(span, span.parentSpanId === undefined ? undefined : byId.get(span.parentSpanId))
    if (fault !== undefined) faults.push(`${span.name}: ${fault}`)
  }
  return faults
}

function faultOf(span: Span, parent: Span | undefined): string | undefined {
  const { startedAt, endedAt } = span
  if (endedAt < startedAt) return 'it ends before it starts'
  if (span.events.some(({ at }) => at < startedAt || at > endedAt)) return 'an event is not within it'
  if (span.parentSpanId === undefined) return undefined
  if (parent?.traceId !== span.traceId) return 'its parent is not in its trace'
  if (parent.startedAt > startedAt) return 'it starts before its parent'
  // The parent may have given a call up before its child run has ended.
  return parent.runId === span.runId && parent.endedAt < endedAt ? 'it ends after its parent' : undefined
}

const named = (spans: readonly Span[], operation: string): readonly Span[] =>
  spans.filter(({ attributes }) => attributes['gen_ai.operation.name'] === operation)

/** What the calls of models in a run used, by their spans. */
function chatUsage(spans: readonly Span[]): Usage {
  return named(spans, 'chat').reduce<Usage>(
    (sum, { attributes }) =>
      addUsage(sum, {
        inputTokens: Number(attributes['gen_ai.usage.input_tokens'] ?? 0),
        outputTokens: Number(attributes['gen_ai.usage.output_tokens'] ?? 0),
      }),
    { inputTokens: 0, outputTokens: 0 },
  )
}

function usageOf(events: readonly RuntimeEvent[]): Usage {
  let total: Usage = {}
  let ofChildren: Usage = { inputTokens: 0, outputTokens: 0 }
  for (const event of events) {
    if (event.type === 'run_finished') total = event.usage
    if (event.type === 'tool_result' && event.child) ofChildren = addUsage(ofChildren, event.child.usage)
  }
  return {
    inputTokens: (total.inputTokens ?? 0) - (ofChildren.inputTokens ?? 0),
    outputTokens: (total.outputTokens ?? 0) - (ofChildren.outputTokens ?? 0),
  }
}

describe('the spans of random runs', () => {
  it('are one tree a trace, each ended once, within its parent', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, async (program) => {
          const { events, others } = await playProgram(program)
          expect(faultsOf(toSpans([...events, ...others.flat()]))).toEqual([])
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })

  it('count each call, each turn and each token of a run once', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, async (program) => {
          const { events, others } = await playProgram(program)
          for (const run of [events, ...others]) {
            const spans = toSpans(run)
            const results = run.filter(({ type }) => type === 'tool_result')
            expect(
              named(spans, 'execute_tool').map((span) => span.attributes['gen_ai.tool.call.id']),
            ).toEqual(results.map(({ toolCallId }) => toolCallId))
            expect(chatUsage(spans)).toEqual(usageOf(run))
            expect(spans.at(-1)?.name).toMatch(/^invoke_agent /)
          }
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })

  it('stay as they are while a run continues, and are the same ones read from its ledger', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, fc.nat(), async (program, cut) => {
          const { events, others, ledger } = await playProgram(program)
          const all = toSpans(events)
          const before = toSpans(events.slice(0, cut % (events.length + 1)))
          expect(all.slice(0, before.length)).toEqual(before)
          const recorded = await Array.fromAsync(readSpans(ledger, events[0]!.runId))
          const byId = (a: Span, b: Span): number => a.spanId.localeCompare(b.spanId)
          expect(recorded.toSorted(byId)).toEqual(toSpans([...events, ...others.flat()]).toSorted(byId))
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })
})
