import { readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { replayRegression } from '@tallystick/replay'
import { describe, expect, it } from 'vitest'
import { openShop, shopAgent, shopConfig } from './kit/shop.ts'
import { json, tallystickHere } from './kit/tallystick.ts'

describe('regression', () => {
  it('writes a run as a test that imports the configuration, and as a fixture that today’s agent replays', async () => {
    await using shop = await openShop()
    const { runId, seq } = await shop.start()
    const out = join(shop.folder, 'test', 'tea.spec.ts')
    const words = ['regression', shop.ledgerPath, 'latest', '--out', out, '--config', shopConfig]
    const { code, stdout, stderr } = await tallystickHere(...words, '--redact', 'for 5 USD', 'Buy (tea)')
    const fixture = join(shop.folder, 'test', 'tea.jsonl')
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${out}\n${fixture}\n` })
    expect(stderr).toMatch(
      new RegExp(`^${seq} events of run ${runId}; secrets were masked in \\d+ of them\\.`),
    )
    const test = await readFile(out, 'utf8')
    expect(test).toContain(`import agents from '${relative(join(shop.folder, 'test'), shopConfig)}'\n`)
    expect(test).toContain('{ secrets: [/for 5 USD/, /Buy (tea)/] }')
    const secrets = [/for 5 USD/, /Buy (tea)/]
    expect(await readFile(fixture, 'utf8')).not.toMatch(/for 5 USD|Buy tea/)
    expect(await replayRegression(fixture, shopAgent(), { secrets })).toEqual({ runId, events: seq })
    expect(await tallystickHere(...words)).toMatchObject({
      ...{ code: 2, stdout: '', stderr: expect.stringContaining('is there already') },
    })
    const other = join(shop.folder, 'test', 'same.spec.ts')
    await tallystickHere(...words.with(4, other), '--recorded-definitions')
    expect(await readFile(other, 'utf8')).toContain("(fixture, agents, { definitions: 'recorded' })")
    const same = join(shop.folder, 'test', 'same.jsonl')
    const coffee = shopAgent('Buy coffee.')
    expect(await replayRegression(same, coffee, { definitions: 'recorded' })).toEqual({ runId, events: seq })
    expect(await replayRegression(same, coffee)).toEqual({
      ...{ runId, events: 0 },
      divergence: {
        ...{ seq: 1, turn: 0, recorded: 'run_started', happened: 'run_started' },
        differences: [{ path: 'definition.instructions', recorded: 'Buy tea.', happened: 'Buy coffee.' }],
      },
    })
  })

  it('is reported to programs as JSON, and refuses an invalid pattern, file and configuration', async () => {
    await using shop = await openShop()
    const { runId, seq } = await shop.start()
    const to = (file: string): string[] => [
      ...['regression', shop.ledgerPath, runId, '--out', join(shop.folder, file)],
    ]
    const config = ['--config', shopConfig]
    expect((await tallystickHere(...to('a.spec.ts'), ...config, '--redact', '(')).code).toBe(2)
    expect((await tallystickHere(...to('a.txt'), ...config)).code).toBe(2)
    expect(
      await tallystickHere(...to('a.spec.ts'), '--config', join(shop.folder, 'absent.ts')),
    ).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining('No configuration was found') },
    })
    const { stdout } = await tallystickHere(...to('a.spec.ts'), ...config, '--json')
    expect(json(stdout)).toEqual({
      ...{ runId, events: seq, redacted: 0 },
      ...{ test: join(shop.folder, 'a.spec.ts'), fixture: join(shop.folder, 'a.jsonl') },
    })
  })
})
