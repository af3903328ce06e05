// The state of the connection to the service, and the login.

import type { Rest, Credentials } from '../link/rest';
import { Problem } from '../link/rest';
import type { Identity, Role } from '../model/types';

export type LinkState = 'CONNECTING' | 'UP' | 'DOWN';

/** Time without a heart-beat after which the prices shown may be out of date. */
export const QUIET_MS = 2_000;
const RANK: Record<Role, number> = { read: 0, trade: 1, admin: 2 };
/** Key in the session storage, which survives a reload and ends with the tab. */
const KEY = 'pitlane.login';

export class LinkStore {
  state: LinkState = $state('CONNECTING');
  /** Reason of the lost connection, if the service reported one. */
  reason = $state('');
  /** Time at which the connection was lost. */
  since = $state(0);
  /** Seconds since the last heart-beat if it is late; 0: it is not. */
  quietS = $state(0);
  /** The service refused the login for live data; the page makes no further attempt. */
  isRefused = $state(false);
  identity: Identity | null = $state.raw(null);
  loginNeeded = $state(false);
  loginError = $state('');

  constructor(private readonly rest: Rest) {
    rest.credentials = loadCredentials();
    rest.onLoginNeeded = (problem) => {
      this.loginError = rest.credentials ? problem.message : '';
      this.loginNeeded = true;
    };
  }

  up(): void {
    this.state = 'UP';
    this.reason = '';
    this.quietS = 0;
    this.isRefused = false;
  }

  /** Records the time since the service last sent anything. It sends at least one octet per second. */
  observeSilence(ms: number): void {
    this.quietS = this.state === 'UP' && ms >= QUIET_MS ? Math.floor(ms / 1000) : 0;
  }

  down(reason: string): void {
    if (this.state !== 'DOWN') this.since = Date.now();
    this.state = 'DOWN';
    this.quietS = 0;
    this.reason = reason || this.reason;
  }

  /** Fetches name and role of the login. A service without this call allows every role. */
  async loadIdentity(): Promise<void> {
    try {
      this.identity = await this.rest.get<Identity>('/rest/ext/identity');
      this.loginNeeded = false;
    } catch (problem) {
      if (problem instanceof Problem && problem.status === 404) this.identity = { name: '', role: 'admin' };
    }
  }

  async login(credentials: Credentials): Promise<boolean> {
    this.rest.credentials = credentials;
    this.loginError = '';
    await this.loadIdentity();
    if (!this.identity) return false;
    this.loginNeeded = false;
    saveCredentials(credentials);
    return true;
  }

  /** Whether the user has logged in. Without authentication no login is needed. */
  get hasLogin(): boolean {
    return this.rest.credentials !== null;
  }

  logout(): void {
    saveCredentials(null);
    this.rest.credentials = null;
  }

  /** Returns whether the login has a role. The service checks the role again on every call. */
  hasRole(role: Role): boolean {
    return this.identity !== null && RANK[this.identity.role] >= RANK[role];
  }
}

function loadCredentials(): Credentials | null {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as Credentials | null;
  } catch {
    return null;
  }
}

function saveCredentials(credentials: Credentials | null): void {
  try {
    if (credentials) sessionStorage.setItem(KEY, JSON.stringify(credentials));
    else sessionStorage.removeItem(KEY);
  } catch {
    // Without storage, a reload requires a new login.
  }
}
