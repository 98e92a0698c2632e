/** What programs need to run at all. Nothing of it is a secret. */
const safeNames: Readonly<Record<'posix' | 'windows', readonly string[]>> = {
  posix: ['HOME', 'LANG', 'LC_ALL', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'USER'],
  windows: [
    ...[
      'APPDATA',
      'COMSPEC',
      'HOMEDRIVE',
      'HOMEPATH',
      'LOCALAPPDATA',
      'PATH',
      'PATHEXT',
      'PROCESSOR_ARCHITECTURE',
    ],
    ...[
      'PROGRAMDATA',
      'PROGRAMFILES',
      'PROGRAMFILES(X86)',
      'PROGRAMW6432',
      'SYSTEMDRIVE',
      'SYSTEMROOT',
      'TEMP',
    ],
    ...['USERNAME', 'USERPROFILE', 'WINDIR'],
  ],
}

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

/** The environment of a server's process: what its configuration names, and of the host only what is safe. */
export function childEnvironment(
  host: Environment,
  named: Environment,
  platform: NodeJS.Platform,
): Record<string, string> {
  const names = safeNames[platform === 'win32' ? 'windows' : 'posix']
  // A value that begins so is a function that a shell would run.
  const safe = names.flatMap((name) => (host[name]?.startsWith('()') ? [] : [[name, host[name]] as const]))
  const all = [...safe, ...Object.entries(named)]
  return Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== undefined))
}
