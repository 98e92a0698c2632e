import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createRuntime, defineAgent, type Agent, type Ledger, type RunId } from '@tallystick/core'
import { checkLaws, scriptedModel, testTool, type ScriptedReply } from '@tallystick/testkit'
import { verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { expect, it } from 'vitest'
import { emptyLedgerFile, temporaryFile } from './support/temporary-folder.ts'

const replies: readonly (readonly string[])[] = [['look'], ['look', 'pay'], ['look', 'look'], []]

/** An agent whose replies follow from what it is shown, and what its tools tell when they begin. */
function agentThat(begins: (name: string, key: string) => void): Agent<unknown> {
  const tools = (['look', 'pay'] as const).map((name) =>
    testTool({
      name,
      effect: name === 'pay' ? 'write' : 'read',
      run({ idempotencyKey }) {
        begins(name, idempotencyKey)
        return 'Done.'
      },
    }),
  )
  const model = scriptedModel(
    Array.from(
      { length: 20 },
      () =>
        ({ messages }: { messages: readonly { role: string }[] }): ScriptedReply => {
          const turn = messages.filter(({ role }) => role === 'assistant').length
          const toolCalls = (replies[turn] ?? []).map((name, place) => ({ name, input: { turn, place } }))
          return { text: `Turn ${turn}.`, toolCalls }
        },
    ),
  )
  return defineAgent({ name: 'agent', instructions: 'Act.', model, tools })
}

/** A ledger that says how long the log was after the last barrier: what follows it is in the memory of the machine alone. */
function measured(path: string) {
  const ledger = sqliteLedger(path)
  let synced = 0
  const append: Ledger['append'] = async (runId, expected, events, options) => {
    const head = await ledger.append(runId, expected, events, options)
    if (options.durability === 'barrier') synced = statSync(`${path}-wal`).size
    return head
  }
  return { ledger: { ...ledger, append }, synced: () => synced }
}

/** What a disk holds of a ledger file whose machine loses power now. */
function onDisk(path: string, synced: number): string {
  const copy = temporaryFile()
  copyFileSync(path, copy)
  writeFileSync(`${copy}-wal`, readFileSync(`${path}-wal`).subarray(0, synced))
  return copy
}

it('a ledger file whose machine loses power while tools run is continued without a second effect', async () => {
  const path = emptyLedgerFile()
  const { ledger, synced } = measured(path)
  const paid: string[] = []
  const losses: { readonly tool: string; readonly disk: string; readonly paid: readonly string[] }[] = []
  const agent = agentThat((tool, key) => {
    losses.push({ tool, disk: onDisk(path, synced()), paid: [...paid, ...(tool === 'pay' ? [key] : [])] })
    if (tool === 'pay') paid.push(key)
  })
  const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.').result
  await ledger.close()
  const found = []
  for (const { tool, disk, paid: before } of losses) {
    const left = sqliteLedger(disk)
    const starts = (await startsIn(left, runId)).length
    const paidAgain: string[] = []
    const next = agentThat((name, key) => void (name === 'pay' && paidAgain.push(key)))
    const result = await createRuntime({ ledger: left, agents: [next] }).resume(runId).result
    expect([tool, result.reason]).toEqual([tool, 'answered'])
    expect(checkLaws(await Array.fromAsync(left.read(runId)))).toEqual([])
    expect((await Array.fromAsync(verifyLedger(left))).map(({ ok }) => ok)).toEqual([true, true])
    expect(paidAgain.filter((key) => before.includes(key))).toEqual([])
    found.push([tool, starts, paidAgain.length])
    await left.close()
  }
  // In front of a write its start is on the disk, with all before it: then it is in doubt, and not started again. The start of
  // a read alone is on the disk after the next barrier.
  expect(found).toEqual([
    ['look', 0, 1],
    ['look', 3, 0],
    ['pay', 3, 0],
    ['look', 3, 0],
    ['look', 3, 0],
  ])
})

async function startsIn(ledger: Ledger, runId: RunId) {
  return (await Array.fromAsync(ledger.read(runId))).filter(({ type }) => type === 'tool_started')
}
