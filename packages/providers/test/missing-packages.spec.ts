import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const home = join(import.meta.dirname, '..')
const run = promisify(execFile)

/** A folder in which the adapters are installed, and no optional package that they need. */
let folder: string
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'missing-packages-')))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  // Node reads no types below node_modules: the package stands beside it, and finds its own name.
  for (const name of ['src', 'package.json'])
    cpSync(join(home, name), join(folder, name), { recursive: true })
  for (const name of ['@tallystick/core', 'rxjs']) {
    const link = join(folder, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(realpathSync(join(home, 'node_modules', name)), link)
  }
})
afterAll(() => rmSync(folder, { recursive: true }))

/** What a program prints. */
async function printed(program: string): Promise<unknown> {
  const parameters = ['--no-warnings', '--input-type=module', '-e', program]
  const { stdout } = await run(process.execPath, parameters, { cwd: folder })
  return JSON.parse(stdout)
}

/** What making a model, or its prices, ends in. */
const made = (entry: string, code: string): string => `
  import * as entry from '@tallystick/providers/${entry}'
  import { ConfigurationError } from '@tallystick/core'
  try {
    entry.${code}
    console.log('"made"')
  } catch (error) {
    console.log(JSON.stringify({ known: error instanceof ConfigurationError, message: error.message }))
  }`

const makers: readonly (readonly [string, string, string])[] = [
  ['anthropic', `anthropic('claude-test')`, '@anthropic-ai/sdk'],
  ['openai', `openai('gpt-test')`, 'openai'],
  ['openai', `openaiChat('gpt-test')`, 'openai'],
  ['ollama', `ollama('qwen-test')`, 'ollama'],
  ['prices', `genaiPrices()`, '@pydantic/genai-prices'],
]

describe.each(makers)('%s: %s', (entry, code, name) => {
  it('names the line that installs its package when it is made', async () => {
    const maker = code.slice(0, code.indexOf('('))
    const message = `${maker}() needs the package ${name}, which is not installed. Add it: npm install ${name}.`
    expect(await printed(made(entry, code))).toEqual({
      known: true,
      message: expect.stringContaining(message),
    })
  })
})

describe.each(makers.filter(([entry]) => entry !== 'prices'))('%s: %s', (entry, code, name) => {
  it('names it at the first call where the host resolves no names', async () => {
    const program = `
      import { registerHooks } from 'node:module'
      registerHooks({
        load(url, context, next) {
          const loaded = next(url, context)
          if (!url.endsWith('/optional-package.ts')) return loaded
          return { ...loaded, source: String(loaded.source).replaceAll('import.meta.resolve', 'undefined') }
        },
      })
      const entry = await import('@tallystick/providers/${entry}')
      const { createRuntime, defineAgent, memoryLedger } = await import('@tallystick/core')
      const model = entry.${code}
      const agent = defineAgent({ name: 'a', instructions: '', model })
      const result = await createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Go.').result
      console.log(JSON.stringify(result))`
    expect(await printed(program)).toMatchObject({
      reason: 'model_failed',
      detail: expect.stringContaining(
        `needs the package ${name}, which is not installed. Add it: npm install ${name}.`,
      ),
    })
  })
})

describe('without the package', () => {
  it.each([
    ['anthropic', `anthropic('claude-test', { client: { messages: { create: async () => [] } } })`],
    ['openai', `openai('gpt-test', { client: { responses: { create: async () => [] } } })`],
    ['openai', `openaiChat('gpt-test', { client: { chat: { completions: { create: async () => [] } } } })`],
    ['prices', `genaiPrices({ calcPrice: () => null })`],
  ])('%s takes what the program brings: %s', async (entry, code) => {
    expect(await printed(made(entry, code))).toBe('made')
  })

  it('every entry can be required', async () => {
    const program = `
      import { createRequire } from 'node:module'
      const require = createRequire(process.cwd() + '/program.js')
      const entries = ['anthropic', 'openai', 'ollama', 'prices']
      console.log(JSON.stringify(entries.map((entry) => typeof require('@tallystick/providers/' + entry))))`
    expect(await printed(program)).toEqual(['object', 'object', 'object', 'object'])
  })
})
