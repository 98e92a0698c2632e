// The folders that a server should work in, read by servers that others wrote.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { joinText } from '@tallystick/core'
import { mcpTools } from '@tallystick/tools/mcp'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connect, tick } from './connected.ts'
import { realServer } from './servers/real-servers.ts'

function newFolder(): string {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'tallystick roots-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

describe('the roots of a server', () => {
  it('given as a path and as a URL, are the folders in which server-filesystem works', async () => {
    const [first, second] = [newFolder(), newFolder()]
    const roots = [first, pathToFileURL(second).href]
    const manager = await connect({ files: realServer('filesystem', [], { roots }) })
    let allowed = ''
    // The server asks for its roots once it was told that the client is there.
    while (!allowed.includes(first)) {
      await tick()
      allowed = joinText(await manager.call('files', 'list_allowed_directories', {}).catch(() => []))
    }
    expect(allowed).toBe(`Allowed directories:\n${first}\n${second}`)
  })

  it('not given, are not offered to the server', async () => {
    const folder = newFolder()
    const manager = await connect({ files: realServer('filesystem', [folder]) })
    expect(joinText(await manager.call('files', 'list_allowed_directories', {}))).toBe(
      `Allowed directories:\n${folder}`,
    )
  })

  it.each([['relative/path'], ['https://a.example/'], [7], ['']])('%j is refused', async (root) => {
    const servers = { files: { command: 'node', roots: [root as string] } }
    await expect(mcpTools({ servers })).rejects.toThrow(
      /roots\[0\] .*expected an absolute path or a file: URL/,
    )
  })
})
