// Writes what each package exports to its `api.txt`, from the declaration files that `tsc -b` builds: `pnpm api`. With
// `--check` it writes nothing, and fails where a report is not what the sources export now.
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { apiReport } from './api/api-report.ts'

const { values: options } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
const root = join(import.meta.dirname, '..')
const stale: string[] = []
for (const manifest of globSync('packages/*/package.json', { cwd: root }).sort()) {
  const folder = join(root, dirname(manifest))
  const report = join(folder, 'api.txt')
  const now = apiReport(folder)
  const before = existsSync(report) ? readFileSync(report, 'utf8') : ''
  if (now === before) continue
  if (!options.check) writeFileSync(report, now)
  stale.push(`${dirname(manifest)}/api.txt`, ...(options.check ? difference(before, now) : []))
}
if (stale.length > 0) console.log(stale.join('\n'))
if (options.check && stale.length > 0) {
  console.log(
    'The public surface has changed. Where that is wanted: pnpm api, and a changeset for its users.',
  )
  process.exitCode = 1
}

/** The lines that went and that came. */
function difference(before: string, now: string): readonly string[] {
  const [old, young] = [before.split('\n'), now.split('\n')]
  return [
    ...old.filter((line) => !young.includes(line)).map((line) => `- ${line}`),
    ...young.filter((line) => !old.includes(line)).map((line) => `+ ${line}`),
  ].map((line) => line.slice(0, 200))
}
