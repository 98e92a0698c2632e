// What the page keeps in the storage of its tab: the server has the rest.

/** The token of the server, from the address that the server printed. It leaves the address bar at once. */
export const token = kept('token', () => new URLSearchParams(location.hash.slice(1)).get('token') ?? '')
history.replaceState(null, '', location.pathname)

/** The chat, which is a session of the ledger. */
export const chatId = kept('chat', () => crypto.randomUUID())

/** A value of the address goes before one that was kept. */
function kept(name: string, find: () => string): string {
  const isGiven = location.hash.includes(`${name}=`)
  const value = (isGiven ? undefined : sessionStorage.getItem(name)) ?? find()
  sessionStorage.setItem(name, value)
  return value
}
