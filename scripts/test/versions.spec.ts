import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const repository = join(import.meta.dirname, '../..')
const page = readFileSync(join(repository, 'docs/versions.md'), 'utf8')

/** The packages that a user installs beside ours. */
const peers = globSync('packages/*/package.json', { cwd: repository }).flatMap((path) => {
  const manifest = JSON.parse(readFileSync(join(repository, path), 'utf8')) as {
    readonly peerDependencies?: Readonly<Record<string, string>>
  }
  return Object.keys(manifest.peerDependencies ?? {})
})

describe('docs/versions.md', () => {
  it.each([...new Set(peers)])('says what the peer %s is for', (peer) => {
    expect(page).toMatch(new RegExp(`^\\| \`${peer}\`[ \\d]*\\| \\S`, 'm'))
  })
})
