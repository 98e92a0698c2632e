// Looks at each package as its users get it: packs it, and has publint and attw judge the tarball. Then installs
// all of them side by side and loads every entry and every command in plain Node, from the compiled files.
import { spawnSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pnpm } from './pnpm.ts'

const repository = join(import.meta.dirname, '..')
const binaries = join(repository, 'node_modules/.bin')

interface Manifest {
  readonly name: string
  readonly bin?: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, unknown>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

const faults: string[] = []

/** Runs a command; what it prints is a fault when it fails. */
function demand(claim: string, cwd: string, command: readonly string[]): boolean {
  const [file = '', ...parameters] = command
  const { status, stdout, stderr } = spawnSync(file, parameters, { cwd, encoding: 'utf8' })
  if (status !== 0) faults.push(`${claim}: ${command.join(' ')}\n${stdout}${stderr}`)
  return status === 0
}

/** Packs a package and unpacks it where a consumer would have it; `undefined` when that fails. */
function install(folder: string, consumer: string): Manifest | undefined {
  const tarball = join(consumer, `${folder}.tgz`)
  const home = join(repository, 'packages', folder)
  if (!demand(`${folder} packs`, home, [...pnpm, 'pack', '--out', tarball])) return undefined
  demand(`${folder} pleases publint`, home, [join(binaries, 'publint'), 'run', tarball, '--strict'])
  demand(`${folder} pleases attw`, home, [join(binaries, 'attw'), tarball, '--profile', 'esm-only'])
  const place = join(consumer, 'node_modules/@tallystick', folder)
  mkdirSync(place, { recursive: true })
  if (!demand(`${folder} unpacks`, place, ['tar', '-xzf', tarball, '--strip-components=1'])) return undefined
  const manifest = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')) as Manifest
  linkDependencies(folder, manifest, consumer, { optional: false })
  return manifest
}

/** Links what the manifest promises and no more: a dependency for development must not be needed here. */
function linkDependencies(
  folder: string,
  manifest: Manifest,
  consumer: string,
  { optional }: { readonly optional: boolean },
): void {
  const { dependencies, peerDependencies, peerDependenciesMeta: notes } = manifest
  for (const name of Object.keys({ ...dependencies, ...peerDependencies })) {
    if (name.startsWith('@tallystick/') || (notes?.[name]?.optional ?? false) !== optional) continue
    link(
      join('packages', folder, 'node_modules', name),
      join(consumer, 'node_modules/@tallystick', folder),
      name,
    )
  }
}

function link(source: string, home: string, name: string): void {
  const path = join(home, 'node_modules', name)
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(realpathSync(join(repository, source)), path)
}

function entriesOf({ name, exports }: Manifest): readonly string[] {
  return Object.keys(exports).flatMap((entry) => (entry.endsWith('.json') ? [] : [name + entry.slice(1)]))
}

/** Its values are those of fast-check, which its users have; and it waits for them, so that no program can require it. */
const needsFastCheck = '@tallystick/core/testing/random'

/** Their classes are those of a package that their users have, made more of. */
const extendPackages = ['@tallystick/server/client', '@tallystick/server/client/ag-ui']

/**
 * The declarations of every entry are sound for a program that checks those of its libraries, too, has none of the optional
 * packages, and whatever it thinks of optional fields: for a module, and for a program in CommonJS.
 */
function checkTypes(entries: readonly string[], consumer: string): void {
  const write = (file: string, lineOf: (entry: string, index: number) => string): string => {
    writeFileSync(join(consumer, file), entries.map(lineOf).join('\n'))
    return join(consumer, file)
  }
  const files = [
    write('entries.mts', (entry, index) => `export * as entry${index} from '${entry}'`),
    write('entries.cts', (entry, index) => `export import entry${index} = require('${entry}')`),
  ]
  const settings = '--ignoreConfig --noEmit --strict --module nodenext --target es2024 --types node'.split(
    ' ',
  )
  for (const exact of ['true', 'false']) {
    const command = [join(binaries, 'tsc'), ...settings, '--exactOptionalPropertyTypes', exact, ...files]
    demand('declarations need no optional package', consumer, command)
  }
}

/** Closes a ledger at the end of its block, by the declarations of core alone: of no Node, and no newer library. */
const usingProgram = `
  import { memoryLedger, type Ledger } from '@tallystick/core'
  export async function headOf(runId: Parameters<Ledger['head']>[0]): Promise<number> {
    await using ledger = memoryLedger()
    return (await ledger.head(runId))?.seq ?? 0
  }
`

/** What is closed by `await using` is declared for programs whose `lib` does not know it, and that check their libraries. */
function checkUsing(consumer: string): void {
  const file = join(consumer, 'using.mts')
  writeFileSync(file, usingProgram)
  const settings = '--ignoreConfig --noEmit --strict --module nodenext --target es2024'.split(' ')
  demand('a ledger is closed by `await using`', consumer, [join(binaries, 'tsc'), ...settings, file])
}

/** Imports every entry of a package, and starts every command. */
function load(manifest: Manifest, consumer: string): number {
  const { name, bin } = manifest
  const entries = entriesOf(manifest)
  for (const entry of entries) {
    demand(`${entry} loads`, consumer, ['node', '--input-type=module', '-e', `import '${entry}'`])
    if (entry === needsFastCheck) continue
    demand(`${entry} is required`, consumer, ['node', '--input-type=commonjs', '-e', `require('${entry}')`])
  }
  const commands = Object.entries(bin ?? {})
  for (const [command, path] of commands) {
    demand(`${command} starts`, consumer, ['node', join(consumer, 'node_modules', name, path), '--help'])
  }
  return entries.length + commands.length
}

/** A program that fails unless a stack of core, in whatever file it is published, names the source. */
const traceProgram = `
  import { defineAgent } from '@tallystick/core'
  try {
    defineAgent({})
  } catch ({ stack }) {
    if (!/core\\/src\\/runtime\\/\\S+\\.ts:\\d+/.test(stack)) throw new Error('No source is named: ' + stack)
  }
`

/** A program that fails unless core loads little of RxJS, and of the RxJS that its users import. */
const rxjsProgram = `
  import { createRequire } from 'node:module'
  import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
  const loaded = Object.keys(createRequire(import.meta.url).cache)
  if (loaded.length > 16) throw new Error('More of RxJS was loaded than the classes that core needs: ' + loaded)
  if (process.moduleLoadList.includes('NativeModule perf_hooks')) throw new Error('Core had Node load perf_hooks.')
  const { Observable, EMPTY } = await import('rxjs')
  const model = { provider: 'none', api: 'none', modelId: 'none', stream: () => EMPTY }
  const agent = defineAgent({ name: 'silent', instructions: 'Say nothing.', model })
  const run = createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Hello?')
  for (const stream of [run.events$, run.state$, run.text$]) {
    if (!(stream instanceof Observable)) throw new Error('A stream is no Observable of RxJS.')
  }
  await run.result
`

/** A program that fails unless core runs the code of zod when a schema needs it, and no sooner. */
const zodProgram = `
  import { defineAgent } from '@tallystick/core'
  import '@tallystick/core/vocabulary'
  const demandRun = (isRun, when) => {
    if ('__zod_globalRegistry' in globalThis !== isRun) throw new Error((isRun ? 'No zod runs ' : 'zod runs ') + when)
  }
  demandRun(false, 'at the import')
  const model = { provider: 'none', api: 'none', modelId: 'none', stream: () => undefined }
  const agent = { name: 'silent', instructions: 'Say nothing.', model }
  defineAgent(agent)
  demandRun(false, 'for an agent whose options fit')
  defineAgent({ ...agent, output: { type: 'object' } })
  demandRun(true, 'for a JSON Schema')
  const { userPartSchema } = await import('@tallystick/core/schemas')
  if (!userPartSchema.safeParse({ type: 'text', text: 'Hello.' }).success) throw new Error('A part is refused.')
  if (userPartSchema.safeParse({ type: 'text' }).success) throw new Error('A part without its text is taken.')
`

/**
 * A program that fails unless a model, a tool and a ledger whose packages are not installed name them at once, as no bundle
 * can. `load` stands for what loads an entry, in a module or in CommonJS.
 */
const missingProgram = (load: string): string => `
  const { registerHooks } = process.getBuiltinModule('node:module')
  const missing = ['@anthropic-ai/sdk', 'undici', 'pg', 'better-sqlite3']
  registerHooks({
    resolve(name, context, next) {
      if (!missing.includes(name)) return next(name, context)
      throw Object.assign(new Error('no'), { code: 'ERR_MODULE_NOT_FOUND' })
    },
  })
  const { anthropic } = ${load}('@tallystick/providers/anthropic')
  const { httpFetch } = ${load}('@tallystick/tools/http-fetch')
  const { postgresLedger } = ${load}('@tallystick/ledger/postgres')
  const { sqliteLedger } = ${load}('@tallystick/ledger/sqlite')
  const connectionString = 'postgres://db.example/app'
  for (const [name, make] of [
    ['@anthropic-ai/sdk', () => anthropic('none')],
    ['undici', () => httpFetch()],
    ['pg', () => postgresLedger({ connectionString })],
    ['better-sqlite3', () => sqliteLedger('runs.db')],
  ]) {
    let message = 'nothing was thrown'
    try {
      make()
    } catch (error) {
      message = error.message
    }
    if (!message.includes('npm install ' + name + '.')) throw new Error(name + ' is not missed: ' + message)
  }
`

/** A program that fails unless a tool whose work is done by a process of its own finds the file of that process. */
const processProgram = `
  import { DatabaseSync } from 'node:sqlite'
  import { sqlQuery } from '@tallystick/tools/sql-query'
  import { lastValueFrom, NEVER } from 'rxjs'
  new DatabaseSync('one.db').exec('CREATE TABLE one (id INTEGER); INSERT INTO one VALUES (41)')
  const tool = sqlQuery({ path: 'one.db' })
  const signals$ = tool.run({ input: { sql: 'SELECT id + 1 AS next FROM one' }, cancelled$: NEVER })
  const answer = JSON.stringify(await lastValueFrom(signals$))
  if (!answer.includes('[[42]]')) throw new Error('The statement was not run: ' + answer)
`

/**
 * What a program imports first that fails unless it has Node load few of its modules: an import of `node:util` loads
 * `parse_args`, and one of `node:fs` a stream of its own.
 */
const fewModules = `
  process.on('exit', () => {
    const unused = ['child_process', 'internal/util/parse_args/parse_args', 'internal/streams/fast-utf8-stream']
    for (const name of unused) {
      if (process.moduleLoadList.includes('NativeModule ' + name)) throw new Error('Node loaded ' + name + '.')
    }
  })
`

/** An agent with a tool, as a page or a worker has it. */
const pageProgram = `
  import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
  import { scriptedModel } from '@tallystick/core/testing'
  import { defineTool, ToolError } from '@tallystick/tools'
  const double = defineTool({
    name: 'double',
    description: 'Doubles a number.',
    input: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
    effect: 'read',
    execute: ({ n }) => {
      if (n > 99) throw new ToolError('Too large.')
      return String(2 * n)
    },
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'double', input: { n: 21 } }] }, { text: 'It is 42.' }])
  const agent = defineAgent({ name: 'page', instructions: 'Double.', model, tools: [double] })
  const run = createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Double 21.')
  globalThis.ended = run.result.then(({ text }) => text + ' ' + JSON.stringify(model.requests[1].messages.at(-1)))
`

/** What pages and workers both have of what programs expect to be there. */
const webGlobals = [
  ...[
    'AbortController',
    'AbortSignal',
    'DOMException',
    'Event',
    'EventTarget',
    'MessageChannel',
    'TextDecoder',
  ],
  ...['TextEncoder', 'URL', 'atob', 'btoa', 'clearInterval', 'clearTimeout', 'console', 'crypto', 'fetch'],
  ...['performance', 'queueMicrotask', 'setInterval', 'setTimeout', 'structuredClone'],
]

/** A program that bundles the page with a stock bundler, and runs it without anything of Node. */
const bundlingProgram = `
  import { createContext, runInContext } from 'node:vm'
  import { rolldown } from ${JSON.stringify(import.meta.resolve('rolldown'))}
  const warnings = []
  const onLog = (level, { message }) => level === 'warn' && warnings.push(message)
  const bundling = await rolldown({ input: 'page.mjs', platform: 'browser', onLog })
  const { output } = await bundling.generate({ format: 'iife' })
  await bundling.close()
  const left = output.flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports])
  const faults = [...warnings.filter((message) => !message.includes('import.meta')), ...left]
  if (faults.length > 0) throw new Error('The bundle needs more than it has: ' + faults.join('; '))
  const names = ${JSON.stringify(webGlobals)}
  const page = createContext(Object.fromEntries(names.map((name) => [name, globalThis[name]])))
  runInContext('globalThis.self = globalThis', page)
  runInContext(output[0].code, page)
  const ended = await page.ended
  if (!ended.startsWith('It is 42. ') || !ended.includes('"42"')) throw new Error('The page ended otherwise: ' + ended)
`

/** Core runs where Node does not: no file of it may import what only Node has. It may ask for it. */
function demandNoNode(consumer: string): void {
  const lib = join(consumer, 'node_modules/@tallystick/core/lib')
  for (const file of readdirSync(lib, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.js')) continue
    const [found] = /\b(?:from|import)\b[ (]*["']node:\w+/.exec(readFileSync(join(lib, file), 'utf8')) ?? []
    if (found !== undefined) faults.push(`core imports nothing of Node: lib/${file} has ${found}`)
  }
}

/** Packages that are native code, or drivers of one store: only who uses them installs them. */
const drivers = ['better-sqlite3', 'pg']

/** A server on Postgres, or a replay of an exported ledger, is installed without the driver of another store. */
function demandNoDriver(folder: string, manifests: ReadonlyMap<string, Manifest>): void {
  const installed = new Set<string>()
  const add = (name: string): void => {
    if (installed.has(name)) return
    installed.add(name)
    const { dependencies, peerDependencies, peerDependenciesMeta: notes } = manifests.get(name) ?? {}
    for (const each of Object.keys({ ...dependencies })) add(each)
    for (const each of Object.keys({ ...peerDependencies })) if (!notes?.[each]?.optional) add(each)
  }
  add(`@tallystick/${folder}`)
  for (const driver of drivers) {
    if (installed.has(driver)) faults.push(`${folder} installs ${driver}, which not all of its users need`)
  }
}

const consumer = mkdtempSync(join(realpathSync(tmpdir()), 'tallystick-packages-'))
try {
  const installed = readdirSync(join(repository, 'packages')).flatMap((folder) => {
    const manifest = install(folder, consumer)
    return manifest === undefined ? [] : [[folder, manifest] as const]
  })
  const manifests = installed.map(([, manifest]) => manifest)
  link('packages/core/node_modules/rxjs', consumer, 'rxjs')
  link('node_modules/@types/node', consumer, '@types/node')
  const entries = manifests.flatMap(entriesOf)
  checkTypes(
    entries.filter((entry) => entry !== needsFastCheck && !extendPackages.includes(entry)),
    consumer,
  )
  checkUsing(consumer)
  for (const [folder, manifest] of installed) linkDependencies(folder, manifest, consumer, { optional: true })
  const loaded = manifests.reduce((sum, manifest) => sum + load(manifest, consumer), 0)
  const node = ['node', '--enable-source-maps', '--input-type=module', '-e', traceProgram]
  demand('stack traces name sources', consumer, node)
  const program = ['node', '--input-type=module', '-e', rxjsProgram]
  demand('streams are those of RxJS, of which little is loaded', consumer, program)
  const run = (source: string, type = 'module'): readonly string[] => [
    'node',
    '--no-warnings',
    `--input-type=${type}`,
    '-e',
    source,
  ]
  demand('zod runs where it is needed', consumer, run(zodProgram))
  demand('packages that are not installed are missed', consumer, run(missingProgram('await import')))
  const required = run(missingProgram('require'), 'commonjs')
  demand('packages that are not installed are missed in CommonJS, too', consumer, required)
  demand('a statement runs in a process of its own', consumer, run(processProgram))
  const command = join(consumer, 'node_modules/@tallystick/cli/lib/main.js')
  const first = `data:text/javascript,${encodeURIComponent(fewModules)}`
  demand('the command begins with few modules of Node', consumer, [
    'node',
    '--import',
    first,
    command,
    'list',
    '--help',
  ])
  demandNoNode(consumer)
  writeFileSync(join(consumer, 'page.mjs'), pageProgram)
  demand('core and tools run in a page or a worker, from a bundle', consumer, run(bundlingProgram))
  const byName = new Map(manifests.map((manifest) => [manifest.name, manifest]))
  for (const folder of ['core', 'ledger', 'server', 'replay', 'otel', 'tools', 'providers']) {
    demandNoDriver(folder, byName)
  }
  for (const fault of faults) console.log(fault)
  console.log(
    `packages: ${manifests.length} packed, ${loaded} entries and commands loaded, ${faults.length} faults`,
  )
  process.exitCode = faults.length > 0 ? 1 : 0
} finally {
  rmSync(consumer, { recursive: true, force: true })
}
