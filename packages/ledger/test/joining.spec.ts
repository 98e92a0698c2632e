import { createRuntime, defineAgent, joinText, type Agent, type Ledger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { verifyRun } from '../src/index.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

function open(path: string): Ledger {
  const ledger = sqliteLedger(path, { pollIntervalMs: 5 })
  onTestFinished(() => ledger.close())
  return ledger
}

const sessionId = 'chat'
const agentOf = (model: ReturnType<typeof scriptedModel>): Agent =>
  defineAgent({ name: 'clerk', instructions: 'Answer.', model, limits: { maxTurns: 1, onLimit: 'stop' } })

it('input of one process that the run of another ends without showing begins the next run of the session', async () => {
  const path = emptyLedgerFile()
  const [first, second] = [open(path), open(path)]
  let end = (): void => {}
  const until = new Promise<void>((resolve) => (end = resolve))
  const [theirs, ours] = [
    agentOf(scriptedModel([{ text: 'One.', until }])),
    agentOf(scriptedModel([{ text: 'Two.' }])),
  ]
  const run = createRuntime({ ledger: first, agents: [theirs] }).run(theirs, 'First.', { sessionId })
  await new Promise((resolve) => run.events$.subscribe(resolve))
  const session = createRuntime({ ledger: second, agents: [ours] }).session(sessionId)
  const taken = new Promise<void>((resolve) => {
    run.events$.subscribe((event) => {
      if (event.type === 'input_received' && event.delivery === 'steer') resolve()
    })
  })
  const joining = session.run(ours, 'Second.', { whenBusy: 'join', inputId: 'message 2' })
  await taken
  end()
  const joined = await joining
  expect(joined.id).not.toBe(run.id)
  expect(await joined.result).toMatchObject({ reason: 'answered', text: 'Two.' })
  expect(await run.result).toMatchObject({ reason: 'answered', text: 'One.' })
  const settled = (await Array.fromAsync(first.read(run.id))).filter(({ type }) => type === 'input_settled')
  expect(settled).toMatchObject([{ receipt: 'message 2', delivered: false }])
  const retried = await session.run(ours, 'Second.', { whenBusy: 'join', inputId: 'message 2' })
  expect(retried.id).toBe(joined.id)
  const { messages = [] } = (await session.history()) ?? {}
  const said = messages.flatMap((message) => (message.role === 'user' ? [joinText(message.parts)] : []))
  expect(said).toEqual(['First.', 'Second.'])
  for (const { id } of [run, joined]) expect(await verifyRun(first, id)).toMatchObject({ ok: true })
})
