// Whether we hear the service, and who we are to it.

import type { Rest, Credentials } from '../link/rest';
import { Problem } from '../link/rest';
import type { Identity, Role } from '../model/types';

export type LinkState = 'CONNECTING' | 'UP' | 'DOWN';

const RANK: Record<Role, number> = { read: 0, trade: 1, admin: 2 };
/** Survives a reload of the page and ends with the tab. */
const KEY = 'pitlane.login';

export class LinkStore {
  state: LinkState = $state('CONNECTING');
  /** Why it is down, where the service said so. */
  reason = $state('');
  /** When it went down. */
  since = $state(0);
  /** The service refused the login for live data, and no further attempt is made. */
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
    this.isRefused = false;
  }

  down(reason: string): void {
    if (this.state !== 'DOWN') this.since = Date.now();
    this.state = 'DOWN';
    this.reason = reason || this.reason;
  }

  /** Asks who we are. A service that does not say so lets everybody do everything. */
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

  /** Whether somebody logged in, rather than being let in as everybody is. */
  get hasLogin(): boolean {
    return this.rest.credentials !== null;
  }

  logout(): void {
    saveCredentials(null);
    this.rest.credentials = null;
  }

  /** Whether what takes a role is shown. The service decides again on every call. */
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
    // Then one logs in again after a reload.
  }
}
