import { type RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { EventAudit } from '../src/verify/event-audit.ts'

const run = sampleRunId(1)
const facts = sampleFacts(run)
const [start] = stampFacts(run, [facts.run_started]) as readonly [RuntimeEvent]
const [ended, again, early] = stampFacts(run, [facts.run_finished, facts.run_finished, facts.tool_result], {
  afterSeq: 1,
}) as readonly [RuntimeEvent, RuntimeEvent, RuntimeEvent]

describe('the audit of the events of a run', () => {
  it('says nothing of a sound event, and knows the run after it', () => {
    const audit = new EventAudit({ accumulates: true })
    expect([audit.known.state, audit.session]).toEqual([undefined, undefined])
    expect(audit.check(start)).toBeUndefined()
    expect(audit.known.state?.seq).toBe(1)
    expect(audit.known.accumulated?.agents).toEqual(['assistant'])
    expect(audit.session).toEqual({ sessionId: `session of ${run}`, sessionPlace: 1 })
  })

  it('accumulates nothing where no summary is to be compared', () => {
    const audit = new EventAudit()
    expect(audit.check(start)).toBeUndefined()
    expect(audit.known).toMatchObject({ state: { seq: 1 }, accumulated: undefined })
  })

  it.each<readonly [string, object, object]>([
    [
      'an id that is none',
      { parent: { runId: 'no id', seq: 1, relation: 'fork' } },
      { what: 'parent.runId', expected: 'a run id', found: '"no id"' },
    ],
    ['a field of another shape', { agent: 7 }, { what: 'agent', expected: 'as run_started has it' }],
  ])('finds %s, and goes no further', (_name, change, fault) => {
    const audit = new EventAudit()
    expect(audit.check({ ...start, ...change })).toMatchObject(fault)
    expect(audit.known.state).toBeUndefined()
  })

  it('finds a fact that is stated twice, and an event that is not legal there', () => {
    const audit = new EventAudit()
    audit.check(start)
    expect(audit.check(early)).toMatchObject({
      what: 'law 5',
      found: expect.stringContaining('tool_result'),
    })
    audit.check(ended)
    expect(audit.check(again)).toMatchObject({ what: 'run_finished', expected: 'once', found: 'twice' })
  })
})
