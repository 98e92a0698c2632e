import { type RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleCallId, sampleRunId, stampFacts } from '@tallystick/testkit'
import { eventTypes } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { isSignificant, normalizeEvent } from '../src/diff.ts'

const event = (fields: object): RuntimeEvent => fields as RuntimeEvent
const words = (text: string): readonly string[] => text.trim().split(/\s+/)

/** What two tries at one task have each for itself. */
const ofOneRun = words(`
  cause inboxKey draining places runId seq epoch at parent sessionId sessionPlace durationMs expiresAt deadlineAt
  retryAt idempotencyKey receipt child reused costUsd usage contextTokens tokensBefore tokensAfter`)
/** The same, at any depth. */
const ofOneRunAnywhere = words(`
  digest requestDigest inputDigest price providerMessageId providerCallId requestId opaque raw recorded`)

describe('an event, as another run of the same task may say it', () => {
  it.each([...ofOneRun, ...ofOneRunAnywhere])('says nothing of %s', (key) => {
    expect(normalizeEvent(event({ type: 'tool_result', [key]: 1, name: 'look' }))).toEqual({
      ...{ type: 'tool_result', name: 'look' },
    })
  })

  it('leaves out within a value what names a reply or a digest, and nothing else', () => {
    for (const key of ofOneRunAnywhere) {
      const within = { content: [{ [key]: 1, text: 'a' }] }
      expect(normalizeEvent(event(within))).toEqual({ content: [{ text: 'a' }] })
    }
    for (const key of ofOneRun) {
      const within = { data: {}, content: [{ [key]: 1 }] }
      expect(normalizeEvent(event(within))).toEqual(within)
    }
  })

  it.each(['input', 'inputSchema', 'output', 'schema', 'data'])(
    'keeps all that a model or a tool wrote: %s',
    (key) => {
      const written = { price: 5, digest: 'd', opaque: [{ raw: null }], id: sampleCallId(sampleRunId(1)) }
      expect(normalizeEvent(event({ [key]: written }))).toEqual({ [key]: written })
      expect(normalizeEvent(event({ calls: [{ [key]: written }] }))).toEqual({ calls: [{ [key]: written }] })
    },
  )

  it('names calls by their places, in whatever run', () => {
    const [one, other] = [1, 2].map((run) => sampleCallId(sampleRunId(run), 3))
    expect(normalizeEvent(event({ toolCallId: one, ids: [other, 'call'] }))).toEqual({
      ...{ toolCallId: 'call 1_1_3', ids: ['call 1_1_3', 'call'] },
    })
  })

  it('keeps what is null', () => {
    expect(normalizeEvent(event({ a: null, c: [true, 1] }))).toEqual({ a: null, c: [true, 1] })
  })

  it('of a take-over is the definition that it brings', () => {
    const definition = { instructions: 'Help.', digest: 'd' }
    expect(normalizeEvent(event({ type: 'run_resumed', why: 'crash', definition }))).toEqual({
      definition: { instructions: 'Help.' },
    })
  })

  it('matters, but for a report of usage or progress, the beginning of a reply, feedback, and a take-over that changes nothing', () => {
    const runId = sampleRunId(1)
    const { run_resumed: resumed, ...facts } = sampleFacts(runId)
    const { definition: _same, ...plain } = resumed
    const significant = stampFacts(runId, [...Object.values(facts), resumed, plain]).filter(isSignificant)
    const silent: readonly string[] = [
      'assistant_started',
      'usage_updated',
      'tool_progress',
      'feedback_given',
    ]
    const types = eventTypes.filter((type) => !silent.includes(type))
    expect(significant.map(({ type }) => type).toSorted()).toEqual(types.toSorted())
  })
})
