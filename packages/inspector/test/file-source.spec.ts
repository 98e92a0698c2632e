import { createRuntime, defineAgent, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { auditAll, serializeState } from '@tallystick/core/machine'
import { exportEvents } from '@tallystick/ledger'
import { scriptedModel } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { FileSource } from '../src/page/data/file-source.ts'

/** An export of a session of three runs, of which the later ones begin with what was said before. */
async function exportSession() {
  const ledger = memoryLedger()
  const model = scriptedModel(['One.', 'Two.', 'Three.'].map((text) => ({ text })))
  const agent = defineAgent({ name: 'counter', instructions: 'Count.', model })
  const runtime = createRuntime({ ledger, agents: [agent] })
  for (const input of ['First?', 'Second?', 'Third?'])
    await runtime.run(agent, input, { sessionId: 's' }).result
  return { ledger, lines: await Array.fromAsync(exportEvents(ledger)) }
}

describe('an export on the page', () => {
  it('has each run whole, with messages that the export holds once', async () => {
    const { ledger, lines } = await exportSession()
    const source = new FileSource('session.jsonl', lines)
    const { runs } = await source.listRuns({})
    expect(runs.map(({ firstWords, status }) => [firstWords, status])).toEqual([
      ['Third?', 'done'],
      ['Second?', 'done'],
      ['First?', 'done'],
    ])
    for (const { runId } of runs) {
      const origin = source.locateRun(runId)
      const events =
        origin.kind === 'lines' ? origin.lines.map((line) => JSON.parse(line) as RuntimeEvent) : []
      const recorded = await Array.fromAsync(ledger.read(runId))
      expect(serializeState(auditAll(events)!)).toEqual(serializeState(auditAll(recorded)!))
    }
  })

  it('says which line is wrong, and how', async () => {
    const { lines } = await exportSession()
    expect(() => new FileSource('a', ['{"a":1}'])).toThrow('Line 1 is not an event.')
    expect(() => new FileSource('a', [lines[0]!, '{'])).toThrow('Line 2 is not JSON')
    const third = lines.filter((line) => line.includes('"shared"')).slice(-1)
    expect(() => new FileSource('a', third)).toThrow(
      /Line 1 begins with \d+ messages .* Drop the whole export/,
    )
  })
})
