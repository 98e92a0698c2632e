// A run whose model searched for its tools, in SQLite: another process takes it over, and it replays to itself.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, defineAgent } from '@tallystick/core'
import { scriptedModel, type ScriptedStep } from '@tallystick/testkit'
import { verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { replayRun } from '@tallystick/replay'
import { defineTool, searchableTools } from '@tallystick/tools'
import { expect, it, onTestFinished } from 'vitest'

it('given a run that found tools, when another process takes it over, then it is shown them, and every event replays', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-search-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const ledger = sqliteLedger(join(folder, 'runs.db'))
  onTestFinished(() => ledger.close())
  const tools = Array.from({ length: 300 }, (_, at) =>
    defineTool({
      ...{ name: `do_${at}`, description: `Does number${at}.`, input: { type: 'object' }, effect: 'write' },
      approval: at === 7 ? 'always' : 'never',
      execute: () => `did ${at}`,
    }),
  )
  const clerk = (steps: readonly ScriptedStep[]) => {
    const model = scriptedModel(steps)
    const agent = defineAgent({
      name: 'clerk',
      instructions: '',
      model,
      toolSource: searchableTools(tools, { maxFound: 1 }),
    })
    return { agent, model, runtime: createRuntime({ ledger, agents: [agent] }) }
  }
  const search = (...words: string[]): ScriptedStep => ({
    toolCalls: words.map((query) => ({ name: 'search_tools', input: { query } })),
  })
  const first = clerk([search('number7', 'number200'), { toolCalls: [{ name: 'do_7', input: {} }] }])
  const waiting = await first.runtime.run(first.agent, 'Go.').result
  const second = clerk([{ toolCalls: [{ name: 'do_200', input: {} }] }, { text: 'Done.' }])
  const run = second.runtime.resume(waiting.runId)
  await run.approve(waiting.pendingApprovals[0]!, { by: 'ada' })
  expect((await run.result).text).toBe('Done.')
  expect(second.model.requests.map((request) => request.tools.map(({ name }) => name))).toEqual([
    ['search_tools', 'do_7', 'do_200'],
    ['search_tools', 'do_7', 'do_200'],
  ])
  const { divergence, events } = await replayRun(ledger, run.id, () => clerk([]).agent)
  expect(divergence).toBeUndefined()
  expect(events).toBe((await Array.fromAsync(ledger.read(run.id))).length)
  expect(await verifyRun(ledger, run.id)).toMatchObject({ ok: true })
})
