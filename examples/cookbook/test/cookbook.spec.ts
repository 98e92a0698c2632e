import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const run = promisify(execFile)
const folder = join(import.meta.dirname, '../src')
const contrary = new URL('./contrary-assert.ts', import.meta.url).href

/** Something that each recipe prints. */
const printed: Readonly<Record<string, string>> = {
  'approval-elsewhere.ts': 'paid 70 euros back',
  'approval-link.ts': 'The invoice is paid.',
  'budget-with-ask.ts': 'The script says: sales rose in both chapters. It cost 0.024 dollars.',
  'child-run.ts': 'The script says: the incident is over. The operator took 2 turns.',
  'compacting-session.ts': 'The script was shown:\nUser: We want to renovate the kitchen.',
  'fallback-model.ts': 'The script answers: Seoul has 9 million people.',
  'guardrails.ts': 'card-numbers: replace\npayment-cap: block\nno-advice: replace',
  'handoff.ts': 'front desk hands over to billing.\nThe script says: in May an engineer',
  'live-text.ts': '- The balance is 99 euros. \n- The script says: 50 euros are saved.',
  'opa-policy.ts': 'run small (OPA, policy r41)\nask above 100 USD (OPA, policy r41)\nsettle above 1,000 USD',
  'slack-buttons.ts': 'It is paid.',
  'steering.ts': 'The script was told: In the morning only.\nThe script was told: And a hotel?',
  'structured-output.ts': 'A-20417 was broken 7 days ago.\noutput_invalid: it is not JSON',
}
const recipes = Object.keys(printed)

describe('the cookbook', () => {
  it('has these recipes, in the README too, and each is under 60 lines', () => {
    expect(readdirSync(folder).sort()).toEqual(recipes)
    const readme = readFileSync(join(folder, '../README.md'), 'utf8')
    for (const recipe of recipes) {
      expect(readme).toContain(`(src/${recipe})`)
      const lines = readFileSync(join(folder, recipe), 'utf8').trimEnd().split('\n').length
      expect({ recipe, short: lines < 60 }).toEqual({ recipe, short: true })
    }
  })

  it.each(recipes)('%s does what it claims', async (recipe) => {
    const { stdout } = await run(process.execPath, [join(folder, recipe)])
    expect(stdout).toContain(printed[recipe])
  })

  it.concurrent.each(recipes)('%s exits with an error when a claim does not hold', async (recipe) => {
    const failing = run(process.execPath, ['--import', contrary, join(folder, recipe)])
    await expect(failing).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('AssertionError'),
    })
  })
})
