// Looks at each package as its users get it: packs it, has publint and attw judge the tarball, installs all of them side by
// side with what their manifests promise and no more, and uses them in plain Node.
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  globSync,
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
import { delimiter, dirname, join } from 'node:path'

interface Manifest {
  readonly name: string
  readonly bin?: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

const repository = join(import.meta.dirname, '..')
const consumer = mkdtempSync(join(realpathSync(tmpdir()), 'tallystick-packages-'))
const env = {
  ...process.env,
  PATH: [join(repository, 'node_modules/.bin'), process.env['PATH']].join(delimiter),
  TALLYSTICK_PUBLISHED: join(consumer, 'node_modules'),
}
let faults = 0

/** Runs a command; what it prints is a fault when it fails. */
function demand(claim: string, command: string, words: readonly string[], cwd = consumer): void {
  const { status, stdout, stderr } = spawnSync(command, words, { cwd, env, encoding: 'utf8' })
  if (status === 0) return
  faults++
  console.log(`${claim}: ${[command, ...words].join(' ')}\n${stdout}${stderr}`)
}

const demandProgram = (claim: string, program: string, type = 'module'): void =>
  demand(claim, 'node', ['--enable-source-maps', '--no-warnings', `--input-type=${type}`, '-e', program])

/** Unpacks a package where a consumer would have it. */
function install(folder: string): Manifest {
  const [tarball = ''] = globSync(join(consumer, `tallystick-${folder}-*.tgz`))
  demand(`${folder} pleases publint`, 'publint', ['run', tarball, '--strict'])
  demand(`${folder} pleases attw`, 'attw', [tarball, '--profile', 'esm-only'])
  const place = join(consumer, 'node_modules/@tallystick', folder)
  mkdirSync(place, { recursive: true })
  demand(`${folder} unpacks`, 'tar', ['-xzf', tarball, '--strip-components=1'], place)
  return JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')) as Manifest
}

/** Links what a manifest promises: a dependency for development must not be needed. */
function linkDependencies(folder: string, manifest: Manifest, optional: boolean): void {
  const { dependencies, peerDependencies, peerDependenciesMeta: notes } = manifest
  for (const name of Object.keys({ ...dependencies, ...peerDependencies })) {
    if (name.startsWith('@tallystick/') || (notes?.[name]?.optional ?? false) !== optional) continue
    link(`packages/${folder}/node_modules/${name}`, join('node_modules/@tallystick', folder), name)
  }
}

function link(source: string, home: string, name: string): void {
  const path = join(consumer, home, 'node_modules', name)
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(realpathSync(join(repository, source)), path)
}

/** Declarations that stand on those of an optional package, since they extend its classes or return its values. */
const needOptional = /\/(random|vitest|jest|client|client\/ag-ui)$/

/** The declarations of every entry are sound without the optional packages, in a program that checks its libraries. */
function checkTypes(entries: readonly string[]): void {
  const modules = entries.map((entry, index) => `export * as entry${index} from '${entry}'`)
  const required = entries.map((entry, index) => `export import entry${index} = require('${entry}')`)
  writeFileSync(join(consumer, 'entries.mts'), modules.join('\n'))
  writeFileSync(join(consumer, 'entries.cts'), required.join('\n'))
  const settings = '--ignoreConfig --noEmit --strict --module nodenext --target es2024 --types node'
  for (const exact of ['true', 'false']) {
    const words = [
      ...settings.split(' '),
      '--exactOptionalPropertyTypes',
      exact,
      'entries.mts',
      'entries.cts',
    ]
    demand('declarations need no optional package', 'tsc', words)
  }
}

/** Fails unless models, tools and ledgers whose packages are not installed name the line that installs them. */
const missingProgram = `
  import { anthropic } from '@tallystick/providers/anthropic'
  import { httpFetch } from '@tallystick/tools/http-fetch'
  import { postgresLedger } from '@tallystick/ledger/postgres'
  import { sqliteLedger } from '@tallystick/ledger/sqlite'
  for (const [name, make] of [
    ['@anthropic-ai/sdk', () => anthropic('none')],
    ['undici', () => httpFetch()],
    ['pg', () => postgresLedger({ connectionString: 'postgres://db.example/app' })],
    ['better-sqlite3', () => sqliteLedger('runs.db')],
  ]) {
    let message = 'nothing was thrown'
    try { make() } catch (error) { message = error.message }
    if (!message.includes('npm install ' + name + '.')) throw new Error(name + ' is not missed: ' + message)
  }`

/** Fails unless streams are those of the RxJS that users import, and a stack trace names the source. */
const runProgram = `
  import { Observable, EMPTY } from 'rxjs'
  import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
  const model = { provider: 'none', api: 'none', modelId: 'none', stream: () => EMPTY }
  const agent = defineAgent({ name: 'silent', instructions: 'Say nothing.', model })
  const run = createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Hello?')
  if (!(run.events$ instanceof Observable)) throw new Error('A stream is not an Observable of RxJS.')
  await run.result
  let trace = ''
  try { defineAgent({}) } catch ({ stack }) { trace = stack }
  if (!/core\\/src\\/\\S+\\.ts:\\d+/.test(trace)) throw new Error('No source is named: ' + trace)`

/** Fails unless a tool whose work is done by a process of its own finds the file of that process. */
const processProgram = `
  import { DatabaseSync } from 'node:sqlite'
  import { sqlQuery } from '@tallystick/tools/sql-query'
  import { lastValueFrom, NEVER } from 'rxjs'
  new DatabaseSync('one.db').exec('CREATE TABLE one (id INTEGER); INSERT INTO one VALUES (41)')
  const signals$ = sqlQuery({ path: 'one.db' }).run({ input: { sql: 'SELECT id + 1 FROM one' }, cancelled$: NEVER })
  const answer = JSON.stringify(await lastValueFrom(signals$))
  if (!answer.includes('[[42]]')) throw new Error('The statement was not run: ' + answer)`

/** Fails unless the page of the inspector is served, and exported with a run in it, where no Vite is installed. */
const inspectorProgram = `
  import { spawn, spawnSync } from 'node:child_process'
  import { once } from 'node:events'
  import { EMPTY } from 'rxjs'
  import { createRuntime, defineAgent } from '@tallystick/core'
  import { sqliteLedger } from '@tallystick/ledger/sqlite'
  const model = { provider: 'none', api: 'none', modelId: 'none', stream: () => EMPTY }
  const agent = defineAgent({ name: 'silent', instructions: 'Say nothing.', model })
  const ledger = sqliteLedger('inspected.db')
  const { runId } = await createRuntime({ ledger }).run(agent, 'Hello?').result
  await ledger.close()
  const command = 'node_modules/@tallystick/cli/lib/main.js'
  const exported = spawnSync(process.execPath, [command, 'export', 'inspected.db', '--run', 'latest', '--format', 'html'], { encoding: 'utf8' })
  if (!exported.stdout.includes('data-title="' + runId + '">')) throw new Error('No run is in the page: ' + exported.stderr)
  const serving = spawn(process.execPath, [command, 'inspect', 'inspected.db', '--json'], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [line] = await once(serving.stdout, 'data')
    const { url } = JSON.parse(line)
    const cookie = (await fetch(url)).headers.get('set-cookie').split(';')[0]
    const page = await fetch(url.split('?')[0], { headers: { cookie } })
    const html = await page.text()
    if (page.status !== 200 || !html.includes('<script type="module"')) throw new Error('No page: ' + html.slice(0, 500))
  } finally {
    serving.kill()
  }`

/** Recipes of what no page shows by a program. */
const recipes = ['approval-link.ts', 'opa-policy.ts', 'slack-buttons.ts']

/** Fails unless the client in PHP has each of its commands answered. */
const phpProgram = `
  import { execFile } from 'node:child_process'
  import { promisify } from 'node:util'
  import { startBackOffice } from './back-office.ts'
  const token = 'a token of this check'
  const office = await startBackOffice({ ledger: 'office.db', token })
  try {
    const env = { ...process.env, BACK_OFFICE_URL: office.url, BACK_OFFICE_TOKEN: token }
    const client = ${JSON.stringify(join(repository, 'clients/php/test/client.php'))}
    const { stdout } = await promisify(execFile)('php', [client, 'packed'], { env })
    if (!stdout.includes('[true,true,true]')) throw new Error(stdout)
  } finally {
    await office.close()
  }`

/** Pages whose programs use most of the packages. */
const followed =
  'docs/(approval-rules|evaluation|run-options|schedules|server|testing|tools).md can be followed step by step'

try {
  const packing = ['-y', 'pnpm@12', '-r', '--filter', './packages/*', 'pack', '--pack-destination', consumer]
  demand('packages pack', 'npx', packing, repository)
  const installed = readdirSync(join(repository, 'packages')).map(
    (folder) => [folder, install(folder)] as const,
  )
  for (const [folder, manifest] of installed) linkDependencies(folder, manifest, false)
  link('packages/core/node_modules/rxjs', '.', 'rxjs')
  link('node_modules/@types/node', '.', '@types/node')
  const entries = installed.flatMap(([, { name, exports }]) =>
    Object.keys(exports).flatMap((entry) => (entry.endsWith('.json') ? [] : name + entry.slice(1))),
  )
  checkTypes(entries.filter((entry) => !needOptional.test(entry)))
  demandProgram('packages that are not installed are missed', missingProgram)
  for (const [folder, manifest] of installed) linkDependencies(folder, manifest, true)
  // A matcher extends the `expect` of a runner that runs.
  const loaded = entries.filter((entry) => !/\/(?:vitest|jest)$/.test(entry))
  demandProgram('entries load', `for (const entry of ${JSON.stringify(loaded)}) await import(entry)`)
  const required = loaded.filter((entry) => !entry.endsWith('/random'))
  demandProgram(
    'entries are required',
    `for (const entry of ${JSON.stringify(required)}) require(entry)`,
    'commonjs',
  )
  demandProgram('a run plays', runProgram)
  demandProgram('a statement runs in a process of its own', processProgram)
  demandProgram('the inspector shows a run', inspectorProgram)
  link('packages/tools/node_modules/zod', '.', 'zod')
  for (const recipe of recipes) {
    copyFileSync(join(repository, 'examples/cookbook/src', recipe), join(consumer, recipe))
    demand('a recipe works', 'node', ['--no-warnings', recipe])
  }
  if (process.env['TALLYSTICK_PHP'] === 'required') {
    copyFileSync(join(repository, 'clients/php/example/back-office.ts'), join(consumer, 'back-office.ts'))
    demandProgram('the client in PHP is served', phpProgram)
  }
  for (const [, { name, bin = {} }] of installed)
    for (const [command, path] of Object.entries(bin))
      demand(`${command} starts`, 'node', [join('node_modules', name, path), '--help'])
  demand(
    'pages can be followed with packages as they are published',
    'vitest',
    ['run', '--mode', 'thorough', 'scripts/test/docs-pages.spec.ts', '-t', followed],
    repository,
  )
  console.log(`packages: ${installed.length} packed, ${entries.length} entries loaded, ${faults} faults`)
  process.exitCode = faults > 0 ? 1 : 0
} finally {
  rmSync(consumer, { recursive: true, force: true })
}
