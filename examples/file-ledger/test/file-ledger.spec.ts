import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkContract, type PromiseVerdict } from '@tallystick/ledger/contract'
import { createRuntime, defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { verifyLedger } from '@tallystick/ledger'
import { expect, it } from 'vitest'
import { fileLedger } from '../src/file-ledger.ts'
import { temporaryFolder } from '../../../scripts/testing/temporary-folder.ts'

it('keeps every promise of a ledger', async () => {
  const verdicts: PromiseVerdict[] = []
  const makeStore = () => {
    const folder = mkdtempSync(join(tmpdir(), 'tallystick-file-ledger-'))
    return {
      open: () => fileLedger(join(folder, 'runs.jsonl')),
      remove: () => rmSync(folder, { recursive: true }),
    }
  }
  for await (const verdict of checkContract(makeStore)) verdicts.push(verdict)
  expect(verdicts.filter(({ verdict }) => verdict !== 'kept')).toEqual([])
  expect(verdicts.length).toBeGreaterThan(100)
})

it('holds after a crash what it acknowledged, and not the line that was cut off', async () => {
  const folder = temporaryFolder()
  const path = join(folder, 'runs.jsonl')
  const agent = defineAgent({
    name: 'greeter',
    instructions: 'Greet.',
    model: scriptedModel([{ text: 'Hello.' }]),
  })
  const ledger = fileLedger(path)
  const { runId, seq } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Hi!').result
  await ledger.close()
  appendFileSync(path, '{"do":"acquire","runId":"')
  const reopened = fileLedger(path)
  expect(await reopened.head(runId)).toEqual({ seq, epoch: 1 })
  expect(await reopened.acquire(runId)).toEqual({ seq, epoch: 2 })
  await reopened.close()
  const last = fileLedger(path)
  expect(await last.head(runId)).toEqual({ seq, epoch: 2 })
  expect((await Array.fromAsync(verifyLedger(last))).every(({ ok }) => ok)).toBe(true)
  await last.close()
})
