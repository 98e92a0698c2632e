import { createRuntime, defineAgent, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { describeMoment } from '../src/page/worker/moment.ts'
import { RunModel } from '../src/page/worker/run-model.ts'
import { findValue, listChildren } from '../src/page/worker/values.ts'

async function record(result: string): Promise<readonly RuntimeEvent[]> {
  const ledger = memoryLedger()
  const look = testTool({ name: 'look', run: () => result })
  const model = scriptedModel([{ toolCalls: [{ name: 'look', input: { at: 'sea' } }] }, { text: 'Blue.' }])
  const agent = defineAgent({ name: 'painter', instructions: 'Look.', model, tools: [look] })
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Which colour?')
  await run.result
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(run.id)) events.push(event)
  return events
}

describe('a moment', () => {
  it('shows the conversation, what changed, and what comes next', async () => {
    const events = await record('Blue sea.')
    const model = new RunModel()
    model.add(events)
    const started = events.find(({ type }) => type === 'tool_started')!
    const moment = describeMoment(model, started.seq)!
    expect(moment.phase).toBe('executing')
    expect(moment.next).toMatchObject({ kind: 'wait', inFlight: [{ kind: 'tool' }] })
    expect(moment.changes).toContainEqual(
      expect.objectContaining({
        path: ['calls', '0', 'status'],
        after: expect.objectContaining({ preview: 'started' }),
      }),
    )
    expect(moment.conversation.map(({ kind }) => kind)).toEqual(['user', 'call'])
    const last = describeMoment(model, events.length)!
    expect(last.next.kind).toBe('finished')
    expect(last.conversation.map(({ kind, text }) => [kind, text.text])).toEqual([
      ['user', 'Which colour?'],
      ['call', '{\n  "at": "sea"\n}'],
      ['result', 'Blue sea.'],
      ['assistant', 'Blue.'],
    ])
  })

  it('is small though a result is not', async () => {
    const events = await record('x'.repeat(8_000_000))
    const model = new RunModel()
    model.add(events)
    const moment = describeMoment(model, events.length)!
    expect(JSON.stringify(moment).length).toBeLessThan(50_000)
    expect(moment.conversation.find(({ kind }) => kind === 'result')?.text.length).toBeGreaterThan(
      100_000 - 1,
    )
    const [first] = listChildren(findValue(events.at(-1), []))
    expect(first).toMatchObject({ key: 'runId' })
  })

  it('keeps what can be folded before an event that cannot', async () => {
    const events = await record('Blue sea.')
    const model = new RunModel()
    model.add([...events.slice(0, 5), { ...events[1]!, seq: 6 }, { ...events[2]!, seq: 7 }])
    expect(model.fault).toMatchObject({ seq: 6 })
    expect(model.stateAt(7)?.seq).toBe(5)
    expect(model.lastSeq).toBe(7)
  })
})
