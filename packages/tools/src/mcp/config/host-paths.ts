import { posix, win32 } from 'node:path'
import type { McpHost } from './mcp-host.ts'

/** Where a host keeps its files. */
export interface HostPlace {
  readonly platform: NodeJS.Platform
  readonly home: string
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Which part of a file is read: Claude Code keeps servers of one project, and of all, in one file of the user. */
export type ConfigScope = 'all' | 'one_project' | 'every_project'

/** A file of a host. */
export interface HostFile {
  readonly path: string
  readonly scope: ConfigScope
}

/** The files of a host, the one that holds over the others first. */
export function hostFiles(host: McpHost, place: HostPlace): readonly HostFile[] {
  const files = hostPaths(host, place).map((path): HostFile => ({ path, scope: 'all' }))
  if (host !== 'claude-code') return files
  const path = ofClaudeCode(place)
  return [{ path, scope: 'one_project' }, ...files, { path, scope: 'every_project' }]
}

/** The file of the user, with servers of each project and of all. */
function ofClaudeCode({ platform, home }: HostPlace): string {
  return joinedOn(platform)(home, '.claude.json')
}

function joinedOn(platform: NodeJS.Platform): (...parts: string[]) => string {
  const system = platform === 'win32' ? win32 : posix
  return (...parts) => system.join(...parts)
}

function hostPaths(host: McpHost, { platform, home, folder, env }: HostPlace): readonly string[] {
  const join = joinedOn(platform)
  switch (host) {
    case 'claude-desktop':
      return [join(applicationData(), 'Claude', 'claude_desktop_config.json')]
    case 'claude-code':
      return [join(folder, '.mcp.json')]
    case 'cursor':
      return [join(folder, '.cursor', 'mcp.json'), join(home, '.cursor', 'mcp.json')]
    case 'vscode':
      return [join(folder, '.vscode', 'mcp.json'), join(applicationData(), 'Code', 'User', 'mcp.json')]
    case 'codex':
      return [
        join(folder, '.codex', 'config.toml'),
        join(env['CODEX_HOME'] ?? join(home, '.codex'), 'config.toml'),
      ]
    case 'gemini':
      return [join(folder, '.gemini', 'settings.json'), join(home, '.gemini', 'settings.json')]
    case 'windsurf':
      return [join(home, '.codeium', 'windsurf', 'mcp_config.json')]
  }

  function applicationData(): string {
    if (platform === 'win32') return env['APPDATA'] ?? join(home, 'AppData', 'Roaming')
    if (platform === 'darwin') return join(home, 'Library', 'Application Support')
    return env['XDG_CONFIG_HOME'] ?? join(home, '.config')
  }
}
