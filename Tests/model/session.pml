/*
 * The session protocol: two processes on one folder, one backend, one user at a time.
 *
 * Every step that is visible from outside is one atomic step here: a transaction on the file, a
 * write to the key store, a request that leaves, an answer that arrives. Between any two steps the
 * other process, the backend and the clock may act, and the process may die. Inlines have the names
 * of the engine's functions; README.md lists where each is.
 *
 * The bounds: the number of user actions (ACTS), of faults (FAULTS: a death, a lost request or
 * answer, a clock that jumps over a lease, an access token refused for no reason, a key store that
 * does not save or erase a key, a commit that fails), of expiries of
 * access tokens (TICKS), and of requests for data (DATA). The search covers every order of everything
 * within these bounds.
 *
 * -DMUTANT_... removes one rule of the protocol; each mutant must violate a property.
 */

#ifndef ACTS
#define ACTS 2
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef TICKS
#define TICKS 2
#endif
#ifndef DATA
#define DATA 1
#endif

#define SESSIONS 4 /* 1 to 3; 0: none */

byte acts = ACTS, faults = FAULTS, ticks = TICKS, data = DATA;

/* ---- the backend: GoTrue's sessions and their refresh tokens ---- */

bit alive[SESSIONS];
byte newest[SESSIONS]; /* the newest refresh token of the session */
byte user[SESSIONS];
byte made = 1;
bit reused; /* a token two generations behind came outside the interval: the session was deleted */

/* ---- the file ---- */

byte generation = 1;
byte owner = 1;     /* the user; 0: signed out */
byte session = 1;   /* the session whose tokens are stored */
byte token = 1;     /* the stored refresh token */
bit valid = 1;      /* the access token has not expired */
bit intent;         /* a refresh has begun and has no result yet */
byte wrapSession = 1; /* the session key that opens the vault; 0: there is no such wrap */
bit locked;
byte wrapBiometric = 1; /* the biometric key that opens the vault */
byte cacheKey = 1; /* the session whose sign-in made the cache's key; the vault seals it */
bit owesSession;   /* the key store has still to erase `session` */
bit owesBiometric; /* and `biometric` */
byte org = 1;
byte authenticated; /* the number of the last sign-in or unlock */
byte lease;         /* the process that refreshes, + 1 */
byte owed[SESSIONS];    /* the refresh token of an owed revocation; 0: none */
bit owedValid[SESSIONS]; /* its access token has not expired */
byte writer; /* the process in a transaction of several steps, + 1 */

/* ---- the key store ---- */

/* The stored keys; 0: none. */
byte biometric = 1;
byte sessionKey = 1;
#define KEYS 12
byte keys = 1; /* session keys are numbered as they are made, biometric keys as their sessions */
/* Session keys that wrapped a vault in a committed row: copies of the file keep these wraps for ever. */
bit wrapped[KEYS];

/* ---- the processes' memory; index: process ---- */

/* States of a request. */
#define NONE 0
#define ASKED 1    /* the request is in the network */
#define ANSWERED 2 /* the answer is in the network */
#define LOST 3     /* no answer will come: the timeout ends the request */

/* Answers. */
#define OK 1
#define GONE 2    /* refresh_token_not_found, session_not_found */
#define REFUSED 3 /* bad_jwt; 401 of the data service */

bit up[2] = 1;
byte held[2]; /* SessionKeys.held: the wrap whose vault the process has in memory */
/* OpenSession, and the generation it mirrors; 0: nil */
byte openGeneration[2], openSession[2], openToken[2], openOrg[2];
bit tokenRefused[2];

byte refresh[2], refreshGeneration[2], refreshSession[2], refreshToken[2], refreshAnswer[2];
byte refreshNew[2];
bit refreshLeased[2]; /* its lease has not expired */
byte revoke[2], revokeJob[2], revokeToken[2], revokeAnswer[2], revokeNew[2];
bit revokeRefreshes[2];
byte exchange[2]; /* Exchange: the user who signs in; 0: none */
byte exchangeOwner[2], exchangeAuthenticated[2];
byte signIn[2], signInNew[2];
byte upload[2], uploadOwner[2], uploadBearer[2];

/* A refresh in flight whose process died: it may still arrive. */
byte ghost[2], ghostToken[2];

#define OPEN(p) (openGeneration[p] != 0)
/* Symmetry: the processes are alike, so process 0 acts first. */
#define MAY_ACT(p) (acts > 0 && (acts < ACTS || p == 0))
#define HOME(p) (OPEN(p) && !locked)
#define FREE(p) (writer == 0 || writer == p + 1)

#ifdef MUTANT_NO_LEASE
#define MAY_REFRESH(p) true
#else
#define MAY_REFRESH(p) (lease == 0 || lease == p + 1)
#endif

/* An alternative to every step except the first of a call: the process dies before it. */
#define DIES(p) \
  atomic { faults > 0 -> faults--; die(p); goto dead }

/* SessionKeys.open: the vault is in memory, or the key store has the key of the wrap. */
#define OPENS(p) (wrapSession != 0 && (held[p] == wrapSession || sessionKey == wrapSession))
#define OWING (owesSession || owesBiometric)

/* The memory is lost, a transaction is rolled back, the lease is void (Holder.isAlive), and a request
 * in flight may still arrive. */
inline die(p) {
  up[p] = 0;
  if :: writer == p + 1 -> writer = 0 :: else fi;
  if :: lease == p + 1 -> lease = 0 :: else fi;
  if
  :: refresh[p] == ASKED -> ghost[p] = refreshSession[p]; ghostToken[p] = refreshToken[p]
  :: else
  fi;
  openGeneration[p] = 0; openSession[p] = 0; openToken[p] = 0; openOrg[p] = 0; held[p] = 0;
  tokenRefused[p] = 0;
  refresh[p] = NONE; refreshGeneration[p] = 0; refreshSession[p] = 0; refreshToken[p] = 0;
  refreshAnswer[p] = 0; refreshNew[p] = 0; refreshLeased[p] = 0;
  revoke[p] = NONE; revokeJob[p] = 0; revokeToken[p] = 0; revokeAnswer[p] = 0; revokeNew[p] = 0;
  revokeRefreshes[p] = 0;
  exchange[p] = 0; exchangeOwner[p] = 0; exchangeAuthenticated[p] = 0;
  signIn[p] = NONE; signInNew[p] = 0;
  upload[p] = NONE; uploadOwner[p] = 0; uploadBearer[p] = 0
}

/* ---- the engine ---- */

inline resetSession(p) {
  openGeneration[p] = 0; openSession[p] = 0; openToken[p] = 0; openOrg[p] = 0; held[p] = 0;
  exchange[p] = 0; exchangeOwner[p] = 0; exchangeAuthenticated[p] = 0
}

/* Every call begins with it: it updates the mirror from the row. */
inline reloadSession(p) {
  if
  :: openGeneration[p] == generation
  :: else ->
    openGeneration[p] = 0; openSession[p] = 0; openToken[p] = 0; openOrg[p] = 0;
    tokenRefused[p] = 0;
    if
    :: owner != 0 && OPENS(p) ->
      openGeneration[p] = generation; openSession[p] = session; openToken[p] = token;
      openOrg[p] = org; held[p] = wrapSession
    :: else -> held[p] = 0
    fi
  fi
}

/* ---- the keys (SessionKeys) ---- */

inline saveSession() {
  keys++; sessionKey = keys
}

/* The row gets the wrap by the key store's session key, and nothing is owed any more. */
inline writeWrap() {
  wrapSession = sessionKey; wrapped[sessionKey] = 1; owesSession = 0
}

/* The key store erases `session`, or does not confirm it. */
inline eraseSession() {
  if
  :: sessionKey = 0
  :: faults > 0 && sessionKey != 0 -> faults--; unconfirmed = 1
  fi
}

inline eraseOwed() {
  if :: owesSession -> sessionKey = 0 :: else fi;
  if :: owesBiometric -> biometric = 0 :: else fi;
  owesSession = 0; owesBiometric = 0
}

/* A sign-in over the open session failed after it had replaced `session`. */
inline keepUsable(p) {
#ifndef MUTANT_FORGETS_THE_OPEN_SESSION
  if
  :: OPEN(p) && held[p] == wrapSession && wrapSession != 0 && sessionKey != wrapSession ->
    saveSession(); writeWrap(); held[p] = wrapSession
  :: else
  fi
#else
  skip
#endif
}

/* measure, SessionPolicy.decide, present: the decision depends on the row of this moment. */
inline decide(p) {
  reloadSession(p);
  assert(!HOME(p) || (owner != 0 && wrapSession != 0 && !locked)) /* no home while locked */
}

/* Clear everything of the session except the generation, which is raised. */
inline clearSession() {
  generation++;
  owner = 0; session = 0; token = 0; valid = 0; intent = 0; wrapSession = 0; locked = 0;
  wrapBiometric = 0; org = 0; cacheKey = 0;
#ifndef MUTANT_END_OWES_NOTHING
  owesSession = 1; owesBiometric = 1
#endif
}

inline addRevocation(s, with, isValid) {
  owed[s] = with; owedValid[s] = isValid
}

/* Take the lease and write the intent, in one transaction. */
inline beginRefresh(p) {
  if
  :: MAY_REFRESH(p) && generation == openGeneration[p] ->
    /* While a lease holds, no other process refreshes. */
    assert(!(refresh[1 - p] != NONE && refreshLeased[1 - p]));
    lease = p + 1;
#ifndef MUTANT_NO_INTENT
    intent = 1;
#endif
    /* The request leaves, or the process dies first and it never arrives. */
    refresh[p] = ASKED; refreshLeased[p] = (lease == p + 1);
    refreshGeneration[p] = openGeneration[p]; refreshSession[p] = openSession[p];
    refreshToken[p] = openToken[p]
  :: else
  fi
}

/* SessionStore.update with the new tokens: generation + 1, intent cleared. */
inline store(p) {
  if
#ifdef MUTANT_NO_SWAP
  :: true ->
#else
  :: generation == refreshGeneration[p] ->
#endif
    generation++;
    session = refreshSession[p]; token = refreshNew[p]; valid = 1; intent = 0
  :: else
  fi
}

/* Only a proof ends a session, and only its own session. */
inline endSession(p) {
  if
#ifdef MUTANT_END_ANY
  :: owner != 0 ->
#else
  :: generation == refreshGeneration[p] ->
#endif
    assert(!alive[session]);
    clearSession(); ended = 1
  :: else
  fi
}

inline finishRefresh(p) {
  if :: lease == p + 1 -> lease = 0 :: else fi;
  refresh[p] = NONE; refreshGeneration[p] = 0; refreshSession[p] = 0; refreshToken[p] = 0;
  refreshAnswer[p] = 0; refreshNew[p] = 0; refreshLeased[p] = 0
}

inline finishRevoke(p) {
  revoke[p] = NONE; revokeJob[p] = 0; revokeToken[p] = 0; revokeAnswer[p] = 0; revokeNew[p] = 0;
  revokeRefreshes[p] = 0
}

/* RevocationTable.due: the other process's lease holds until its time-out. */
#define DUE(s, p) (owed[s] != 0 && !(revokeJob[1 - p] == s && revoke[1 - p] != LOST))

/* canUse, by the row of this moment. */
#define USABLE(p) (owner != 0 && OPENS(p) && !locked)
#define NEEDS_REFRESH(p) (tokenRefused[p] && openGeneration[p] == generation || (intent && refresh[p] == NONE) || !valid)

proctype Engine(byte p) {
  byte job, row, before;
  bit begun, ended, wasOpen, isBio, unconfirmed;
  byte fresh; /* the wrap that a sign-in has written */

end_ready:
  do
  /* eraseOwed, at the begin of a call */
  :: atomic { writer == 0 && OWING -> eraseOwed() }
  /* poll, in the order of Scheduler.next. */
  :: atomic { FREE(p) && exchange[p] != 0 && signIn[p] == NONE ->
      signIn[p] = ASKED }
  :: atomic { FREE(p) && !(exchange[p] != 0 && signIn[p] == NONE) && revoke[p] == NONE &&
      (DUE(1, p) || DUE(2, p) || DUE(3, p)) ->
      if :: DUE(1, p) -> job = 1 :: else -> if :: DUE(2, p) -> job = 2 :: else -> job = 3 fi fi;
      /* launchRevocation: refresh an expired access token first. */
      revokeRefreshes[p] = !owedValid[job];
      revokeJob[p] = job; revokeToken[p] = owed[job]; revoke[p] = ASKED; job = 0 }
  :: atomic { FREE(p) && USABLE(p) && NEEDS_REFRESH(p) && refresh[p] == NONE && MAY_REFRESH(p) ->
      decide(p) };
    if
    :: atomic { writer == 0 -> beginRefresh(p) }
    :: DIES(p)
    fi
  :: atomic { FREE(p) && data > 0 && USABLE(p) && !NEEDS_REFRESH(p) && upload[p] == NONE ->
      data--; decide(p) };
    /* Uploader.send: items and token come from the same mirror. */
    atomic { FREE(p) ->
#ifdef MUTANT_ITEMS_OF_THE_ROW
      uploadOwner[p] = owner;
#else
      uploadOwner[p] = user[openSession[p]];
#endif
      uploadBearer[p] = user[openSession[p]];
      if
      :: uploadOwner[p] != 0 -> upload[p] = ASKED
      :: else -> uploadOwner[p] = 0; uploadBearer[p] = 0
      fi;
      /* no request with the wrong user's token */
      assert(upload[p] == NONE || uploadOwner[p] == uploadBearer[p]) }

  /* complete: a refresh, `refreshed`. */
  :: atomic { FREE(p) && (refresh[p] == ANSWERED || refresh[p] == LOST) ->
      decide(p);
      if :: refresh[p] == LOST -> refreshAnswer[p] = 0 :: else fi };
#ifdef MUTANT_USED_BEFORE_STORED
    /* The mirror has the new tokens before the file: requests in between use them. */
    atomic {
      if
      :: refreshAnswer[p] == OK && openGeneration[p] == refreshGeneration[p] ->
        openToken[p] = refreshNew[p];
        if
        :: ticks > 0 -> ticks--; refreshToken[p] = openToken[p]; refreshAnswer[p] = 0;
          refresh[p] = ASKED; goto end_ready
        :: true
        fi
      :: else
      fi };
#endif
    atomic { writer == 0 ->
      if
      :: refreshAnswer[p] == OK -> store(p)
      :: refreshAnswer[p] == GONE -> endSession(p)
      :: else /* staySigned */
#ifdef MUTANT_END_WITHOUT_PROOF
        -> if :: generation == refreshGeneration[p] -> endSession(p) :: else fi
#endif
      fi };
    if
    :: atomic { writer == 0 ->
      if :: ended -> eraseOwed(); resetSession(p); ended = 0 :: else fi;
      decide(p); finishRefresh(p) }
    :: DIES(p)
    fi

  /* complete: a revocation, `revoked`. */
  :: atomic { writer == 0 && (revoke[p] == ANSWERED || revoke[p] == LOST) ->
      job = revokeJob[p];
      if
      :: revoke[p] == LOST || owed[job] == 0
      :: else ->
        if
        :: revokeAnswer[p] == OK && revokeRefreshes[p] -> addRevocation(job, revokeNew[p], 1)
        :: revokeAnswer[p] == REFUSED -> owedValid[job] = 0
        :: else -> owed[job] = 0; owedValid[job] = 0
        fi
      fi;
      job = 0; finishRevoke(p) }

  /* complete: a sign-in, `signedIn`. */
  :: atomic { writer == 0 && signIn[p] == LOST -> signIn[p] = NONE; signInNew[p] = 0;
      exchange[p] = 0; exchangeOwner[p] = 0; exchangeAuthenticated[p] = 0 }
  :: atomic { writer == 0 && signIn[p] == ANSWERED ->
      decide(p);
      row = generation;
      begun = exchange[p] != 0 && exchangeOwner[p] == owner &&
        exchangeAuthenticated[p] == authenticated };
    if
    /* adopt: save `session`, write the row, under the file's write lock. */
    :: atomic { begun && writer == 0 && generation == row -> writer = p + 1; reloadSession(p);
#ifdef MUTANT_BIOMETRIC_FIRST
        biometric = signInNew[p];
#endif
        saveSession() };
      if
      :: atomic { true ->
        if
        :: OPEN(p) && user[openSession[p]] != user[signInNew[p]] ->
          addRevocation(openSession[p], openToken[p], valid)
        :: else
        fi;
        generation++;
        if
        :: owner != user[signInNew[p]] || !OPEN(p) -> org = 0; cacheKey = signInNew[p]
        :: else
        fi;
        owner = user[signInNew[p]]; session = signInNew[p]; token = 1; valid = 1; intent = 0;
        writeWrap(); fresh = wrapSession; locked = 0; authenticated++;
        if :: wrapBiometric != 0 -> owesBiometric = 1 :: else fi;
        wrapBiometric = 0; writer = 0 };
        /* enrol: save `biometric`, write its wrap, unless another process has replaced or locked the session. */
        if
        :: atomic { writer == 0 ->
          if
          :: wrapSession == fresh ->
            biometric = signInNew[p]; wrapBiometric = biometric; owesBiometric = 0
          :: else
          fi }
        /* The key store does not save it, or the commit fails. */
        :: atomic { faults > 0 -> faults-- }
        :: atomic { faults > 0 && writer == 0 -> faults--; biometric = signInNew[p] }
        :: DIES(p)
        fi
      /* The commit fails. */
      :: atomic { faults > 0 -> faults--; keepUsable(p); writer = 0;
        addRevocation(signInNew[p], 1, 1) }
      :: DIES(p)
      fi
    /* decline: the session will not be used, so revoke it. */
    :: atomic { writer == 0 && !(begun && generation == row) ->
        addRevocation(signInNew[p], 1, 1) }
    fi;
    if
    :: atomic { FREE(p) -> signIn[p] = NONE; signInNew[p] = 0; begun = 0; row = 0; fresh = 0;
      exchange[p] = 0; exchangeOwner[p] = 0; exchangeAuthenticated[p] = 0;
      decide(p) }
    :: DIES(p)
    fi

  /* complete: a batch, `uploaded`; every item changes under its own owner. */
  :: atomic { upload[p] == ANSWERED ->
      upload[p] = NONE; uploadOwner[p] = 0; uploadBearer[p] = 0 }

  /* refuseToken: the data service rejected the token of the stored session. */
  :: atomic { faults > 0 && USABLE(p) && !tokenRefused[p] -> faults--; decide(p);
      tokenRefused[p] = 1 }

  /* ---- the user ---- */

  /* signInComplete, begin */
  :: atomic { MAY_ACT(p) && writer == 0 && exchange[p] == 0 && signIn[p] == NONE && made < 3 ->
      acts--;
      if :: exchange[p] = 1 :: exchange[p] = 2 fi;
      exchangeOwner[p] = owner; exchangeAuthenticated[p] = authenticated }

  /* sessionLogout */
  :: atomic { MAY_ACT(p) && FREE(p) && owner != 0 -> acts--; decide(p); wasOpen = OPEN(p) };
    if
    :: atomic { writer == 0 ->
#ifdef MUTANT_LOGOUT_READS_BEFORE
      before = openSession[p];
#else
      reloadSession(p); wasOpen = OPEN(p);
      before = openSession[p];
#endif
      /* a session that can be revoked is revoked */
      assert(owner == 0 || !OPENS(p) || (wasOpen && before == session));
      if :: wasOpen -> addRevocation(before, openToken[p], valid && before == session) :: else fi;
      before = 0; wasOpen = 0;
      clearSession(); resetSession(p) }
    :: DIES(p)
    fi;
    if
    :: atomic { writer == 0 -> eraseOwed(); decide(p) }
    :: DIES(p)
    fi

  /* sessionLock, lock; and a lock by timeout: drop the keys from memory, erase `session`, write the
   * row. */
  :: atomic { MAY_ACT(p) && FREE(p) && owner != 0 && wrapSession != 0 -> acts--; reloadSession(p);
      row = generation };
    if
    :: atomic { writer == 0 ->
      if
#ifdef MUTANT_LOCK_GIVES_UP
      :: owner != 0 && generation == row ->
#else
      :: owner != 0 ->
#endif
        writer = p + 1;
#ifndef MUTANT_LOCK_KEEPS_GENERATION
        resetSession(p);
#endif
#ifndef MUTANT_LOCK_KEEPS_THE_KEY
        eraseSession()
#endif
      :: else
      fi };
      if
      :: atomic { true ->
        if
        :: writer == p + 1 ->
#ifdef MUTANT_LOCK_KEEPS_GENERATION
          wrapSession = 0;
#else
          generation++; wrapSession = 0; if :: locked = 1 :: true fi;
#endif
#ifndef MUTANT_OWES_NOTHING
          owesSession = unconfirmed;
#endif
          unconfirmed = 0; writer = 0
        :: else
        fi;
        row = 0; decide(p);
        assert(owner == 0 || !HOME(p)) /* after a lock, nothing is readable */ }
      :: DIES(p)
      fi
    :: DIES(p)
    fi

  /* sessionUnlock, openWithBiometrics: the key from the key store decides, not the host's claim. Save
   * a new `session`, write the row. */
  :: atomic { MAY_ACT(p) && FREE(p) && owner != 0 && (!OPENS(p) || locked) -> acts--; decide(p);
      row = generation; isBio = biometric != 0 && biometric == wrapBiometric };
    if
    :: atomic { writer == 0 ->
      if
      :: isBio && generation == row -> writer = p + 1; saveSession()
      :: else
      fi };
      if
      :: atomic { true ->
        if
        :: writer == p + 1 ->
          generation++; writeWrap(); locked = 0; authenticated++; writer = 0
        :: else
        fi;
        isBio = 0; row = 0; decide(p) }
      :: DIES(p)
      fi
    :: DIES(p)
    fi

  /* orgSelect, choose */
  :: atomic { MAY_ACT(p) && FREE(p) && USABLE(p) -> acts--; decide(p) };
    if
    :: atomic { writer == 0 ->
      if
      :: generation == openGeneration[p] -> generation++; org = 3 - (org -> org : 2)
      :: else
      fi;
      decide(p) }
    :: DIES(p)
    fi

  /* The process dies while idle. */
  :: atomic { faults > 0 && up[p] -> faults--; die(p) }; goto dead
  od;

dead:
  /* Engine.init */
  atomic { writer == 0 -> job = 0; row = 0; before = 0; begun = 0; ended = 0; wasOpen = 0; isBio = 0;
    fresh = 0; unconfirmed = 0; up[p] = 1; decide(p) };
  goto end_ready
}

/* ---- the world ---- */

/* POST /token?grant_type=refresh_token (wire.md A6, measured): the newest token rotates; its parent
 * returns the newest again, at any time; an older one ends the session. */
inline rotate(s, given, answer, result) {
  if
  :: !alive[s] -> answer = GONE
  :: alive[s] && given == newest[s] -> newest[s]++; answer = OK; result = newest[s]
  :: alive[s] && given + 1 == newest[s] -> answer = OK; result = newest[s]
  :: else -> alive[s] = 0; reused = 1; answer = GONE
  fi
}

/* No request is overtaken by two refreshes that both began after it: a request in flight with the
 * parent of the newest token arrives before the newest is rotated. See README.md. */
#ifdef LIMIT_OVERTAKEN
#define MAY_ROTATE(s, given) true
#else
#define WAITS(state, of, given, s) (state == ASKED && of == s && given + 1 == newest[s])
#define MAY_ROTATE(s, given) (given != newest[s] || \
  !(WAITS(refresh[0], refreshSession[0], refreshToken[0], s) || \
    WAITS(refresh[1], refreshSession[1], refreshToken[1], s) || \
    WAITS(revoke[0], revokeJob[0], revokeToken[0], s) && revokeRefreshes[0] || \
    WAITS(revoke[1], revokeJob[1], revokeToken[1], s) && revokeRefreshes[1] || \
    ghost[0] == s && ghostToken[0] + 1 == newest[s] || \
    ghost[1] == s && ghostToken[1] + 1 == newest[s]))
#endif
#define REFRESH_ARRIVES(p) (refresh[p] == ASKED && MAY_ROTATE(refreshSession[p], refreshToken[p]))
#define REVOKE_ARRIVES(p) (revoke[p] == ASKED && \
  (!revokeRefreshes[p] || MAY_ROTATE(revokeJob[p], revokeToken[p])))
#define GHOST_ARRIVES(p) (ghost[p] != 0 && MAY_ROTATE(ghost[p], ghostToken[p]))

proctype Backend() {
  byte p, none;
end:
  do
  :: atomic { REFRESH_ARRIVES(0) || REFRESH_ARRIVES(1) ->
      if :: REFRESH_ARRIVES(0) -> p = 0 :: REFRESH_ARRIVES(1) -> p = 1 fi;
      rotate(refreshSession[p], refreshToken[p], refreshAnswer[p], refreshNew[p]);
      refresh[p] = ANSWERED; p = 0 }
  :: atomic { GHOST_ARRIVES(0) || GHOST_ARRIVES(1) ->
      if :: GHOST_ARRIVES(0) -> p = 0 :: GHOST_ARRIVES(1) -> p = 1 fi;
      if
      :: rotate(ghost[p], ghostToken[p], none, none)
      :: true /* it never arrives */
      fi;
      none = 0; ghost[p] = 0; ghostToken[p] = 0; p = 0 }
  :: atomic { REVOKE_ARRIVES(0) || REVOKE_ARRIVES(1) ->
      if :: REVOKE_ARRIVES(0) -> p = 0 :: REVOKE_ARRIVES(1) -> p = 1 fi;
      if
      :: revokeRefreshes[p] ->
        rotate(revokeJob[p], revokeToken[p], revokeAnswer[p], revokeNew[p])
      :: else ->
        /* POST /logout: an expired access token revokes nothing. */
        if
        :: !alive[revokeJob[p]] -> revokeAnswer[p] = GONE
        :: alive[revokeJob[p]] && owedValid[revokeJob[p]] ->
          alive[revokeJob[p]] = 0; revokeAnswer[p] = OK
        :: else ->
          revokeAnswer[p] = REFUSED
        fi
      fi;
      revoke[p] = ANSWERED; p = 0 }
  :: atomic { signIn[0] == ASKED || signIn[1] == ASKED ->
      if :: signIn[0] == ASKED -> p = 0 :: signIn[1] == ASKED -> p = 1 fi;
      if
      :: made < 3 && exchange[p] != 0 -> made++; alive[made] = 1; newest[made] = 1;
        user[made] = exchange[p]; signInNew[p] = made; signIn[p] = ANSWERED
      :: else -> signIn[p] = LOST
      fi;
      p = 0 }
  :: atomic { upload[0] == ASKED || upload[1] == ASKED ->
      if :: upload[0] == ASKED -> p = 0 :: upload[1] == ASKED -> p = 1 fi;
      upload[p] = ANSWERED; p = 0 }

  /* A request or an answer is lost. */
  :: atomic { faults > 0 && (refresh[0] == ASKED || refresh[0] == ANSWERED) ->
      faults--; refresh[0] = LOST }
  :: atomic { faults > 0 && (refresh[1] == ASKED || refresh[1] == ANSWERED) ->
      faults--; refresh[1] = LOST }
  :: atomic { faults > 0 && (revoke[0] == ASKED || revoke[0] == ANSWERED) ->
      faults--; revoke[0] = LOST }
  :: atomic { faults > 0 && (revoke[1] == ASKED || revoke[1] == ANSWERED) ->
      faults--; revoke[1] = LOST }

  /* The device's clock jumps over a lease that holds. */
  :: atomic { faults > 0 && lease != 0 -> faults--; lease = 0; refreshLeased[0] = 0;
      refreshLeased[1] = 0 }
  od
}

/* Access tokens expire. By then every timeout has passed: requests in flight never arrive. */
proctype Time() {
end:
  do
  :: atomic { ticks > 0 -> ticks--;
      valid = 0; owedValid[1] = 0; owedValid[2] = 0; owedValid[3] = 0;
      lease = 0; refreshLeased[0] = 0; refreshLeased[1] = 0;
#ifndef MUTANT_SENT_LATE
      if :: refresh[0] != NONE -> refresh[0] = LOST :: else fi;
      if :: refresh[1] != NONE -> refresh[1] = LOST :: else fi;
      ghost[0] = 0; ghostToken[0] = 0; ghost[1] = 0; ghostToken[1] = 0;
#endif
      if :: revoke[0] != NONE -> revoke[0] = LOST :: else fi;
      if :: revoke[1] != NONE -> revoke[1] = LOST :: else fi }
  od
}

/* ---- properties ---- */

/* The stored tokens belong to the row's user: no late answer stores another user's. */
#define OWN_TOKENS (owner == 0 && session == 0 || owner != 0 && user[session] == owner)
/* No request of the library has ended a session. */
#define NOT_REUSED (!reused)
/* Whenever a process died: the server still accepts the stored token, */
#define FORGIVEN (session == 0 || !alive[session] || newest[session] - token <= 1)
/* and if it is not the newest, the file says that a refresh is needed. */
#define TO_BE_ASKED (session == 0 || !alive[session] || newest[session] == token || intent)
/* While nobody is signed in or the session is locked, the key store has no key that opens a wrap of any
 * copy of the file, unless it still owes the erasure. */
#define SHUT (writer != 0 || wrapSession != 0 || owesSession || !wrapped[sessionKey])
/* Nobody is signed out without proof: a key opens the stored session. After a lock, one without biometrics is opened by
 * a sign-in. */
#define OPENABLE (writer != 0 || owner == 0 || wrapSession == 0 && wrapBiometric == 0 || \
  wrapSession != 0 && wrapSession == sessionKey || \
  wrapBiometric != 0 && wrapBiometric == biometric)
/* The cache's key is one of the row's user. */
#define OWN_CACHE (owner == 0 && cacheKey == 0 || owner != 0 && user[cacheKey] == owner)
#define SAFE (OWN_TOKENS && NOT_REUSED && FORGIVEN && TO_BE_ASKED && SHUT && OPENABLE && OWN_CACHE)

#define OWES (owed[1] != 0 || owed[2] != 0 || owed[3] != 0)

proctype Monitor() {
end:
  do
  :: d_step { !SAFE -> assert(OWN_TOKENS); assert(NOT_REUSED); assert(FORGIVEN);
      assert(TO_BE_ASKED); assert(SHUT); assert(OPENABLE); assert(OWN_CACHE) }
  /* All activity has ended: no work may be left undone. */
  :: timeout ->
    assert(!OWES); /* owed revocations were carried out */
    assert(!OWING); /* and owed erasures */
    assert(!(USABLE(0) || USABLE(1)) || (valid && !intent && token == newest[session] ||
      !alive[session]));
    break
  od
}

init {
  d_step {
    alive[1] = 1; newest[1] = 1; user[1] = 1; wrapped[1] = 1
  };
  atomic { run Engine(0); run Engine(1); run Backend(); run Time(); run Monitor() }
}
