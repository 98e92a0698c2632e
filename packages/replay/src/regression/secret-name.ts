/** What names of secrets end in, in lower case and without what parts words. */
const endings: readonly string[] = [
  'password',
  'passwords',
  'passwd',
  'passphrase',
  'passcode',
  'passwordhash',
  'passwordconfirmation',
  'secret',
  'secrets',
  'secretkey',
  'privatekey',
  'signingkey',
  'encryptionkey',
  'masterkey',
  'authkey',
  'apikey',
  'apikeys',
  'accesskey',
  'accesskeyid',
  'accountkey',
  'subscriptionkey',
  'servicekey',
  'token',
  'credential',
  'credentials',
  'connectionstring',
  'authorization',
  'cookie',
]

/** Tokens that are places in a list. */
const placeTokens = /(?:page|next|previous|continuation|cursor|sync)token$/
/** Short words that name a secret only after another word: `PWD` alone is a folder. */
const shortWords: ReadonlySet<string> = new Set(['pwd', 'pass', 'pw'])
/** Keys of databases and of cryptography that are no secrets. */
const openKeys: ReadonlySet<string> = new Set([
  'PUBLIC',
  'PRIMARY',
  'FOREIGN',
  'PARTITION',
  'SORT',
  'IDEMPOTENCY',
])

/** Whether a name is that of a secret: of a field, a header, a parameter or a variable of the environment. */
export function isSecretName(name: string): boolean {
  const fields = name.split(/[^A-Za-z0-9]/).filter((word) => word !== '')
  const joined = fields.join('').toLowerCase()
  let end = joined.length
  while (end > 0 && '0123456789'.includes(joined[end - 1] ?? '')) end--
  const letters = joined.slice(0, end)
  if (endings.some((ending) => letters.endsWith(ending))) return !placeTokens.test(letters)
  const last = fields.at(-1) ?? ''
  if (fields.length < 2) return false
  if (shortWords.has(last.toLowerCase())) return true
  // A variable of the environment, such as OPENAI_KEY.
  return last === 'KEY' && !fields.some((word) => openKeys.has(word))
}

/** Whether a name is of a kind that only a secret has: `token` and `secret` alone are words of plain sentences. */
export function isPlainlySecret(name: string): boolean {
  return isSecretName(name) && !/^(?:token|secrets?|credentials?)$/i.test(name)
}
