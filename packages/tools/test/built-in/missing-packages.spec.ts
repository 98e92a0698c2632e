import { execFile } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const home = join(import.meta.dirname, '../..')
const run = promisify(execFile)

/** A folder in which the tools are installed, and no optional package that they need. */
let folder: string
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'missing-packages-')))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  // Node reads no types below node_modules: the package is beside it, and finds its own name.
  for (const name of ['src', 'package.json'])
    cpSync(join(home, name), join(folder, name), { recursive: true })
  const { dependencies } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as {
    readonly dependencies: object
  }
  for (const name of ['rxjs', ...Object.keys(dependencies)]) {
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

/** Prints what making a tool ends in. */
const made = (entry: string, code: string): string => `
  const entry = await import('@tallystick/tools/${entry}')
  const { ConfigurationError } = await import('@tallystick/core')
  try {
    await entry.${code}
    console.log('"made"')
  } catch (error) {
    console.log(JSON.stringify({ known: error instanceof ConfigurationError, message: error.message }))
  }`

/** A bundle resolves no name, not even that of the package whose modules it holds. */
const bundled = `
  import { registerHooks } from 'node:module'
  registerHooks({
    resolve(name, context, next) {
      if (name === '@tallystick/tools/package.json') throw new Error('Nothing has this name.')
      return next(name, context)
    },
  })`

const missing = (user: string, name: string): string =>
  `${user} needs the package ${name}, which is not installed. Add it: npm install ${name}.`

describe('a tool whose package is not installed', () => {
  it.each([
    ['http-fetch', 'httpFetch()', 'The tool http_fetch', 'undici'],
    ['sql-query', `sqlQuery({ path: 'shop.db' })`, 'The tool sql_query', 'better-sqlite3'],
    ['sql-query', `sqlQuery({ connectionString: 'postgres://a/b' })`, 'The tool sql_query', 'pg'],
    ['memory', `sqliteMemory('memory.db')`, 'sqliteMemory()', 'better-sqlite3'],
    ['memory', `postgresMemory({ connectionString: 'postgres://a/b' })`, 'postgresMemory()', 'pg'],
    ['mcp', 'mcpTools({ servers: {} })', 'mcpTools()', '@modelcontextprotocol/client'],
    ['mcp', 'serveMcp([])', 'serveMcp()', '@modelcontextprotocol/server'],
  ])('names the line that installs it when %s is made', async (entry, code, user, name) => {
    expect(await printed(made(entry, code))).toEqual({ known: true, message: missing(user, name) })
  })

  it('is made in a bundle, which may hold the package, and names the line at its first call', async () => {
    const program = `${bundled}
      const { httpFetch } = await import('@tallystick/tools/http-fetch')
      const { NEVER } = await import('rxjs')
      httpFetch()
        .run({ input: { url: 'https://example.com/' }, cancelled$: NEVER })
        .subscribe((signal) => console.log(JSON.stringify(signal)))`
    expect(await printed(program)).toMatchObject({
      type: 'tool_ended',
      outcome: 'failed',
      content: [{ type: 'text', text: missing('The tool http_fetch', 'undici') }],
    })
  })

  it('is a ConfigurationError in a bundle, too, where no tool is called yet', async () => {
    const program = `${bundled}${made('mcp', 'mcpTools({ servers: {} })')}`
    const message = missing('mcpTools()', '@modelcontextprotocol/client')
    expect(await printed(program)).toEqual({ known: true, message })
  })

  it('is refused in a bundle where no bundle can hold the package', async () => {
    const program = `${bundled}${made('sql-query', `sqlQuery({ path: 'shop.db' })`)}`
    expect(await printed(program)).toMatchObject({ message: missing('The tool sql_query', 'better-sqlite3') })
  })
})
