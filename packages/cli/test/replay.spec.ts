import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { agentTool, defineAgent } from '@tallystick/core'
import { extractRunId } from '@tallystick/core/vocabulary'
import { scriptedModel } from '@tallystick/testkit'
import { boss, clerk, officeConfig } from './kit/office.ts'
import { openShop, shopAgent, shopConfig, type Shop } from './kit/shop.ts'
import { json, tallystickHere, tallystickOnTerminal } from './kit/tallystick.ts'

let configs = 0
/** Writes a configuration of an agent as this code makes it; answers the option that names it. */
async function configOf(shop: Shop, code: string): Promise<readonly string[]> {
  const path = join(shop.folder, `${++configs}.config.mjs`)
  await writeFile(
    path,
    `import { shopAgent } from '${import.meta.resolve('./kit/shop.ts')}'\nexport default { agents: [${code}] }`,
  )
  return ['--config', path]
}

describe('replay', () => {
  it('shows of texts of several lines those that differ, and what compares the rest', async () => {
    await using shop = await openShop()
    const lines = ['Buy tea.', 'Look first.', 'Then pay.']
    const { runId } = await shop.start(shopAgent(lines.join('\n')))
    const other = await configOf(
      shop,
      `shopAgent(${JSON.stringify(lines.toSpliced(1, 1, 'Look twice.', 'Sit.').join('\n'))})`,
    )
    const words = ['replay', shop.ledgerPath, runId, ...other]
    const differs = await tallystickHere(...words)
    expect(differs).toMatchObject({
      code: 3,
      stdout:
        `${runId}  0 events happened again as recorded, then:\nevent 1, before the first turn: run_started shopper\n` +
        '  definition.instructions, from line 2\n    recorded Look first.\n    happened Look twice.\n             Sit.\n',
    })
    const [hint = '', command = ''] = differs.stderr.split('\n')
    expect(hint).toMatch(/^Today's definition of the agent differs from the recorded one/)
    expect(command).toBe(
      `  tallystick replay ${shop.ledgerPath} ${runId} --recorded-definitions ${other.join(' ')}`,
    )
    const again = await tallystickHere(...command.trim().split(' ').slice(1))
    expect(again).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/ events happened again as recorded\n$/),
    })
  })

  it('shows of events of different types what each is', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const stopping = await configOf(shop, `{ ...shopAgent(), rules: { stopWhen: ({ turn }) => turn === 1 } }`)
    const { code, stdout, stderr } = await tallystickHere('replay', shop.ledgerPath, runId, ...stopping)
    expect({ code, stderr }).toEqual({ code: 3, stderr: '' })
    expect(stdout).toMatch(
      /, then:\nevent \d+, in turn 2\n {2}recorded model_call_started scripted-1\n {2}happened run_finished stopped\n$/,
    )
  })

  it('names the commands that replay its child runs', async () => {
    await using shop = await openShop()
    const { runId, pendingApprovals } = await shop.start(boss())
    const office = ['--config', officeConfig]
    await tallystickHere('resume', shop.ledgerPath, runId, '--yes', ...office)
    const child = extractRunId(pendingApprovals[0]!.toolCallId)
    const { code, stderr } = await tallystickHere('replay', shop.ledgerPath, runId, ...office)
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr:
        'The results of its child runs were taken from the record. These commands replay the child runs:\n' +
        `  tallystick replay ${shop.ledgerPath} ${child} ${office.join(' ')}\n`,
    })
    expect(await tallystickHere('replay', shop.ledgerPath, child!, ...office)).toMatchObject({
      code: 0,
      stderr: '',
    })
  })

  it('is a 2 where today has no agent of that name, and says how far it is on a terminal', async () => {
    await using shop = await openShop()
    const model = scriptedModel([{ text: 'Hello.' }])
    const { runId } = await shop.start(
      defineAgent({ name: 'stranger', instructions: '', model, tools: [agentTool(clerk())] }),
    )
    const config = ['--config', shopConfig]
    expect(await tallystickHere('replay', shop.ledgerPath, runId, ...config)).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining('The configuration has no agent named stranger') },
    })
    const { seq } = await shop.start()
    const { code, stderr } = await tallystickOnTerminal('replay', shop.ledgerPath, 'latest', ...config)
    expect(code).toBe(0)
    expect(stderr).toContain(`\r\u001B[K${seq} of ${seq} events`)
    expect(
      json((await tallystickHere('replay', shop.ledgerPath, 'latest', '--json', ...config)).stdout),
    ).toMatchObject({
      events: seq,
    })
  })
})
