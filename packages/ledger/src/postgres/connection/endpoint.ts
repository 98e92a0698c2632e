/** Where a server and a database are. */
export interface Endpoint {
  readonly host: string
  readonly port: number
  readonly database: string | undefined
}

/**
 * The endpoint that a connection string names, read as pg reads it, with the same variables of the environment for what it
 * leaves out; so it is known before pg is loaded. Throws where the string cannot be read; the error may repeat it.
 */
export function endpointOf(connectionString: string): Endpoint {
  const named = connectionString.startsWith('/') ? socketOf(connectionString) : urlOf(connectionString)
  const { PGHOST, PGPORT, PGDATABASE, PGUSER, USER, USERNAME } = process.env
  const user = named.user || PGUSER || (process.platform === 'win32' ? USERNAME : USER)
  return {
    host: named.host || PGHOST || 'localhost',
    port: Number.parseInt(named.port || PGPORT || '5432', 10),
    database: named.database || PGDATABASE || user,
  }
}

type Named = { readonly [Part in 'host' | 'port' | 'database' | 'user']?: string | null | undefined }

/** A socket of the machine, and the database after a blank. */
function socketOf(connectionString: string): Named {
  const [host, database] = connectionString.split(' ')
  return { host, database }
}

function urlOf(connectionString: string): Named {
  const { url, hasHost } = parsed(connectionString)
  const asked = url.searchParams
  const user = asked.get('user') || decodeURIComponent(url.username)
  if (url.protocol === 'socket:') return { host: decodeURI(url.pathname), database: asked.get('db'), user }
  const hostname = hasHost ? url.hostname.replace(/^\[(.+)\]$/, '$1') : ''
  const isSocket = Boolean(asked.get('host')) && /^%2f/i.test(hostname)
  const path = isSocket ? hostname + url.pathname : url.pathname.slice(1)
  return {
    host: asked.get('host') || decodeURIComponent(hostname),
    port: asked.get('port') || url.port,
    database: path === '' ? undefined : decodeURI(path),
    user,
  }
}

/** Blanks, and signs that begin no escape, are escaped. A string without a host is read with one in its place. */
function parsed(connectionString: string): { readonly url: URL; readonly hasHost: boolean } {
  const escaped = / |%[^a-f0-9]|%[a-f0-9][^a-f0-9]/i.test(connectionString)
    ? encodeURI(connectionString).replace(/%25(\d\d)/g, '%$1')
    : connectionString
  const base = 'postgres://base'
  if (URL.canParse(escaped, base)) return { url: new URL(escaped, base), hasHost: true }
  return { url: new URL(escaped.replace('@/', '@nowhere/'), base), hasHost: false }
}
