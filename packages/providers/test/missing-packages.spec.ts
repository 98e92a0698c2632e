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
  // Node reads no types below node_modules: the package is put beside it, and finds its own name.
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

/** What each part of a program answers, all in one process. A part is the body of a function. */
async function answers(parts: readonly string[], begin = ''): Promise<readonly unknown[]> {
  const functions = parts.map((part) => `async () => {${part}}`)
  return (await printed(`${begin}
    const answers = []
    for (const part of [${functions.join()}]) answers.push(await part())
    console.log(JSON.stringify(answers))`)) as readonly unknown[]
}

/** What making a model, or its prices, ends in. */
const made = ([entry, code]: readonly [string, string, ...unknown[]]): string => `
  const entry = await import('@tallystick/providers/${entry}')
  const { ConfigurationError } = await import('@tallystick/core')
  try {
    entry.${code}
    return 'made'
  } catch (error) {
    return { known: error instanceof ConfigurationError, message: error.message }
  }`

const makers: readonly (readonly [string, string, string])[] = [
  ['anthropic', `anthropic('claude-test')`, '@anthropic-ai/sdk'],
  ['openai', `openai('gpt-test')`, 'openai'],
  ['openai', `openaiChat('gpt-test')`, 'openai'],
  ['ollama', `ollama('qwen-test')`, 'ollama'],
  ['prices', `genaiPrices()`, '@pydantic/genai-prices'],
]

/** The words of an error that name the line which installs a package. */
const line = (name: string): string =>
  `needs the package ${name}, which is not installed. Add it: npm install ${name}.`

it('what is made without its package names the line that installs it', async () => {
  expect(await answers(makers.map(made))).toEqual(
    makers.map(([, code, name]) => ({
      known: true,
      message: expect.stringContaining(`${code.slice(0, code.indexOf('('))}() ${line(name)}`),
    })),
  )
})

it('a model names it at its first call where the host resolves no names', async () => {
  const models = makers.filter(([entry]) => entry !== 'prices')
  const unresolved = `
    import { registerHooks } from 'node:module'
    registerHooks({
      load(url, context, next) {
        const loaded = next(url, context)
        if (!url.endsWith('/shared/options.ts')) return loaded
        return { ...loaded, source: String(loaded.source).replaceAll('import.meta.resolve', 'undefined') }
      },
    })`
  const called = ([entry, code]: (typeof makers)[number]): string => `
    const entry = await import('@tallystick/providers/${entry}')
    const { createRuntime, defineAgent, memoryLedger } = await import('@tallystick/core')
    const agent = defineAgent({ name: 'a', instructions: '', model: entry.${code} })
    return createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Go.').result`
  expect(await answers(models.map(called), unresolved)).toMatchObject(
    models.map(([, , name]) => ({
      reason: 'model_failed',
      detail: expect.stringContaining(line(name)),
    })),
  )
})

describe('without the package', () => {
  it('every entry takes what the program brings', async () => {
    const brought: readonly (readonly [string, string])[] = [
      ['anthropic', `anthropic('claude-test', { client: { messages: { create: async () => [] } } })`],
      ['openai', `openai('gpt-test', { client: { responses: { create: async () => [] } } })`],
      ['openai', `openaiChat('gpt-test', { client: { chat: { completions: { create: async () => [] } } } })`],
      ['prices', `genaiPrices({ calcPrice: () => null })`],
    ]
    expect(await answers(brought.map(made))).toEqual(brought.map(() => 'made'))
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
