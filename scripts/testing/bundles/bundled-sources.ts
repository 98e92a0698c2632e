import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { bundleSources, type Bundled } from './bundle-sources.ts'

const root = join(import.meta.dirname, '../../..')
const cache = join(root, 'node_modules/.cache/tallystick-bundles')
const maxAgeMs = 24 * 60 * 60_000

/** Waits for an import while it runs: in one file with what it imports it would wait for itself. */
const awaitsImport = 'packages/core/src/testing/random.ts'

/** What most programs load, and in most modules: hundreds of small files, which Node takes longer to find than to run. */
const bundled: Bundled = {
  root,
  sources: globSync('packages/{core,ledger,replay}/src/**/*.ts', { cwd: root })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path !== awaitsImport)
    .sort(),
  libraries: {
    rxjs: 'packages/core',
    zod: 'packages/core',
    '@noble/hashes/hmac.js': 'packages/core',
    '@noble/hashes/sha2.js': 'packages/core',
    '@noble/hashes/utils.js': 'packages/core',
    kysely: 'packages/ledger',
    'kysely/migration': 'packages/ledger',
  },
}

/**
 * Returns the value of NODE_OPTIONS by which a program loads core, ledger and replay from few files, which takes half of the
 * time. The files are made anew whenever a source has changed, and remain until a day later.
 */
export async function bundledSources(): Promise<string> {
  const folder = join(cache, digestOfSources())
  if (!existsSync(folder)) await make(folder)
  const redirect = pathToFileURL(join(import.meta.dirname, 'redirect.ts'))
  redirect.searchParams.set('folder', `${pathToFileURL(folder).href}/`)
  return [process.env['NODE_OPTIONS'], `--import=${redirect.href}`].filter(Boolean).join(' ')
}

function digestOfSources(): string {
  const hash = createHash('sha256')
  const makers = readdirSync(import.meta.dirname).map((name) => join('scripts/testing/bundles', name))
  for (const path of ['pnpm-lock.yaml', ...makers, ...bundled.sources]) {
    hash
      .update(path)
      .update('\0')
      .update(readFileSync(join(root, path)))
      .update('\0')
  }
  return hash.digest('hex').slice(0, 32)
}

async function make(folder: string): Promise<void> {
  mkdirSync(cache, { recursive: true })
  for (const name of readdirSync(cache)) {
    const other = join(cache, name)
    const age = Date.now() - (statSync(other, { throwIfNoEntry: false })?.mtimeMs ?? 0)
    if (age > maxAgeMs) rmSync(other, { recursive: true, force: true })
  }
  const unfinished = `${folder}.${process.pid}`
  writeFileSync(join(unfinished, 'table.json'), JSON.stringify(await bundleSources(bundled, unfinished)))
  writeFileSync(join(unfinished, 'package.json'), '{ "type": "module" }')
  try {
    renameSync(unfinished, folder)
  } catch (error) {
    rmSync(unfinished, { recursive: true })
    // Another process has made the same meanwhile.
    if (!existsSync(folder)) throw error
  }
}
