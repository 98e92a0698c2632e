import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { bundledSources } from '../testing/bundles/bundled-sources.ts'

const sources = (path: string): string => new URL(`../../packages/${path}`, import.meta.url).href

const program = `import { registerHooks } from 'node:module'
let files = 0
registerHooks({
  load(url, context, next) {
    if (!url.startsWith('node:')) files++
    return next(url, context)
  },
})
const [entry, source, ledger] = await Promise.all(process.argv.slice(1).map((path) => import(path)))
const { ConfigurationError } = source
const names = ['defineAgent', 'createRuntime'].filter((name) => name in entry)
let failure
try {
  ledger.sqliteLedger(':memory:', { nonsense: 1 })
} catch (error) {
  failure = error
}
const isSame = entry.ConfigurationError === ConfigurationError && failure instanceof ConfigurationError
console.log(JSON.stringify({ names, isSame, isFew: files < 80 }))`

async function run(options: string | undefined): Promise<unknown> {
  const words = [
    ...['--input-type=module', '--eval', program],
    sources('core/src/index.ts'),
    sources('core/src/values/errors.ts'),
    sources('ledger/src/sqlite/index.ts'),
  ]
  const { NODE_OPTIONS: _options, ...env } = process.env
  const own = { ...env, ...(options !== undefined && { NODE_OPTIONS: options }) }
  const { stdout } = await promisify(execFile)(process.execPath, words, { env: own })
  return JSON.parse(stdout)
}

it('a program loads few files, and the same classes whichever module it imports', async () => {
  const names = ['defineAgent', 'createRuntime']
  expect(await run(await bundledSources())).toEqual({ names, isSame: true, isFew: true })
  expect(await run(undefined)).toEqual({ names, isSame: true, isFew: false })
})
