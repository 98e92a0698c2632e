import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRuntime, defineAgent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import type { ApprovalRules } from '@tallystick/tools/policy'
import { describe, expect, it } from 'vitest'
import { json, tallystickHere } from './kit/tallystick.ts'
import { temporaryFolder } from '../../../scripts/testing/temporary-folder.ts'

function folderWith(rules: unknown): { readonly rulesPath: string; readonly ledgerPath: string } {
  const folder = temporaryFolder()
  const rulesPath = join(folder, 'rules.json')
  writeFileSync(rulesPath, JSON.stringify(rules))
  return { rulesPath, ledgerPath: join(folder, 'runs.db') }
}

/** Pays 5 and 500, asks for a tool that there is not, and reads. */
async function record(ledgerPath: string): Promise<void> {
  const ledger = sqliteLedger(ledgerPath)
  const model = scriptedModel([
    {
      toolCalls: [
        { name: 'pay', input: { amount: 5 } },
        { name: 'pay', input: { amount: 500 } },
        { name: 'conjure', input: {} },
        { name: 'look', input: {} },
      ],
    },
    { text: 'Done.' },
  ])
  const pay = testTool({ name: 'pay', effect: 'write' })
  const agent = defineAgent({
    name: 'clerk',
    instructions: '',
    model,
    tools: [pay, testTool({ name: 'look' })],
  })
  await createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.').result
  await ledger.close()
}

const rules: ApprovalRules = {
  version: 1,
  rules: [
    { effect: 'read', agent: 'clerk', decision: 'allow' },
    { tool: 'pay', input: { amount: { atMost: 100 } }, decision: 'ask' },
    { tool: 'pay', decision: 'deny', why: 'Too much.' },
  ],
  examples: [
    { call: { tool: 'pay', input: { amount: 100 } }, decision: 'ask' },
    { call: { tool: 'pay', input: { amount: 101 } }, decision: 'deny' },
  ],
}

describe('policy check', () => {
  it('tries the examples of the rules', async () => {
    const { rulesPath } = folderWith(rules)
    expect(await tallystickHere('policy', 'check', rulesPath)).toEqual({
      code: 0,
      stderr: '',
      stdout:
        'ok      example 1 pay {"amount":100} ask\n' +
        'ok      example 2 pay {"amount":101} deny\n' +
        '3 rules, 2 examples: 2 hold, 0 do not\n',
    })
  })

  it('fails where an example does not hold, and says which rule decided', async () => {
    const examples = [{ call: { tool: 'pay', input: { amount: 101 } }, decision: 'allow' }]
    const { rulesPath } = folderWith({ ...rules, examples })
    const { code, stdout } = await tallystickHere('policy', 'check', rulesPath)
    expect(code).toBe(1)
    expect(stdout).toContain('FAILED  example 1 pay {"amount":101} deny, not allow: Too much. (rule 3)\n')
    const asJson = await tallystickHere('policy', 'check', rulesPath, '--json')
    expect(asJson.code).toBe(1)
    expect(json(asJson.stdout)).toEqual({
      ...{ example: 1, holds: false, demanded: 'allow', decision: 'deny', rule: 3 },
      reason: 'Too much. (rule 3)',
    })
  })

  it('tells what the rules decide about the calls of a ledger, and runs nothing', async () => {
    const { rulesPath, ledgerPath } = folderWith({ ...rules, examples: [] })
    await record(ledgerPath)
    const { code, stdout } = await tallystickHere('policy', 'check', rulesPath, ledgerPath)
    expect(code).toBe(0)
    expect(stdout.split('\n')).toEqual([
      'pay  allow on record, ask by rule 2  1 call',
      'pay  allow on record, deny by rule 3  1 call',
      'look  allow on record, allow by rule 1  1 call',
      '3 rules, 0 examples: 0 hold, 0 do not',
      '',
    ])
    const lines = (await tallystickHere('policy', 'check', rulesPath, ledgerPath, '--json')).stdout
    expect(lines.trimEnd().split('\n').map(json)).toMatchObject([
      { tool: 'pay', recorded: 'allow', decision: 'ask', rule: 2 },
      { tool: 'pay', recorded: 'allow', decision: 'deny', rule: 3 },
      { tool: 'look', recorded: 'allow', decision: 'allow', rule: 1 },
    ])
  })

  it('refuses a file that holds no rules, and an action that it does not know', async () => {
    const { rulesPath } = folderWith({ version: 1, rules: [{ decision: 'perhaps' }] })
    const refused = await tallystickHere('policy', 'check', rulesPath)
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringMatching(/rules\.json: rules\[0\]\.decision is 'perhaps'; use one of/) as string,
    ])
    expect(await tallystickHere('policy', 'try', rulesPath)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Allowed choices are check') as string,
    })
  })

  it('keeps what a file says from the terminal of its reader', async () => {
    const examples = [{ call: { tool: 'a\u001b[2Jb' }, decision: 'allow' }]
    const { rulesPath } = folderWith({ version: 1, rules: [], examples })
    const { stdout } = await tallystickHere('policy', 'check', rulesPath)
    expect(stdout).not.toContain('\u001b')
  })
})
