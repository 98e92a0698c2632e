// What a model wrote and what was shown of it are both in a store, through an export, and gone with its content.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import {
  createRuntime,
  defineAgent,
  outputMask,
  type Ledger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { checkLaws, scriptedModel } from '@tallystick/testkit'
import { exportEvents, foldTo, redact, verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { exportRegression, replayRegression, replayRun } from '@tallystick/replay'
import { temporaryFolder } from './support/temporary-folder.ts'

const cards = outputMask({ name: 'cards', pattern: /\d{4}-\d{4}/g, window: 9, replacement: '****' })
const agent = defineAgent({
  ...{ name: 'desk', instructions: 'Help.', outputStream: { transforms: [cards], nextTurn: 'shown' } },
  model: scriptedModel([
    { reasoning: 'It is 4242-4242.', text: 'Aaaa aaaa aaaa. Your card is 4242-4242, it is.' },
  ]),
})

async function eventsOf(ledger: Ledger, runId: RunId): Promise<readonly RuntimeEvent[]> {
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId)) events.push(event)
  return events
}

it('given a run whose replies are masked, then its store holds both texts, verifies, replays, and loses both when redacted', async () => {
  const folder = temporaryFolder()
  const ledger = sqliteLedger(join(folder, 'runs.db'))
  onTestFinished(() => ledger.close())
  const run = createRuntime({ ledger }).run(agent, 'Which?')
  await run.result
  const events = await eventsOf(ledger, run.id)
  expect(checkLaws(events)).toEqual([])
  const deltas = events.filter((event) => event.type === 'assistant_text_delta')
  expect(deltas.map((event) => event.written ?? event.text).join('')).toContain('4242-4242')
  expect(deltas.map((event) => event.text).join('')).toBe('Aaaa aaaa aaaa. Your card is ****, it is.')
  expect(await verifyRun(ledger, run.id)).toMatchObject({ ok: true })
  expect((await replayRun(ledger, run.id, () => agent)).divergence).toBeUndefined()
  expect(JSON.stringify((await foldTo(ledger, run.id)).history)).not.toContain('Your card is 4242')

  const secrets = [/\d{4}-\d{4}/g]
  const file = join(folder, 'desk.spec.ts')
  const { fixture } = await exportRegression(ledger, run.id, { file, agents: { from: './desk.ts' }, secrets })
  expect(readFileSync(fixture, 'utf8')).not.toContain('4242')
  expect(await replayRegression(fixture, agent, { secrets })).not.toHaveProperty('divergence')

  await redact(ledger, run.id, 'all', { by: 'ada', reason: 'asked' })
  const lines: string[] = []
  for await (const line of exportEvents(ledger, run.id)) lines.push(line)
  expect(lines.join('\n')).not.toMatch(/4242|\*\*\*\*/)
  expect(await foldTo(ledger, run.id)).toMatchObject({ phase: 'done' })
})
