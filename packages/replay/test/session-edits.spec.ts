import { expect, it } from 'vitest'
import { createRuntime, defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { replayRun } from '@tallystick/replay'
import { temporaryFile } from './support/temporary-folder.ts'

it('edits of a session verify and replay to themselves, and so do the runs between them', async () => {
  const ledger = sqliteLedger(temporaryFile())
  const model = scriptedModel([{ text: 'One.' }, { text: 'Two.' }])
  const agent = defineAgent({ name: 'agent', instructions: 'Act.', model })
  const runtime = createRuntime({ ledger, agents: [agent] })
  const session = runtime.session('chat')
  await session.append(
    [
      { role: 'user', content: 'Hello.' },
      { role: 'assistant', content: 'Hi.' },
    ],
    { by: 'ada' },
  )
  await runtime.run(agent, 'Go.', { sessionId: 'chat' }).result
  await session.pop({ by: 'ada', reason: 'It was wrong.' })
  await (await session.branch('other')).append({ role: 'user', content: 'And here?' })
  const onInput = <T>(history: readonly T[], input: T): readonly T[] => [...history.slice(-1), input]
  await runtime.run(agent, 'Go on.', { sessionId: 'other', onInput }).result
  await session.clear()
  let runs = 0
  for await (const { runId, head } of ledger.runs()) {
    runs++
    expect(await verifyRun(ledger, runId)).toMatchObject({ ok: true })
    expect(await replayRun(ledger, runId, () => agent)).toEqual({ runId, events: head.seq })
  }
  expect(runs).toBe(7)
  await ledger.close()
})
