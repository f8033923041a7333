// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislock, with what its README recommends for a single server: one key for a lock, and
// NoLoopTracking with Redis 7.0.5 and newer. It waits for messages of the server and renews every
// half of the lease, both by default.
//
// An answer that takes longer than TryNextAfter, by default 20 ms, makes it delete the key again
// and wait for a message about that. NoLoopTracking turns off the messages about what one has done
// oneself, so it waits for ever, also alone. A busy machine is that slow now and then: it gets 500 ms.
type rueidislockSession struct {
	settings
	locker rueidislock.Locker
}

type rueidislockPlace struct {
	*rueidislockSession
	name   string
	held   context.Context
	cancel context.CancelFunc
}

func openRueidislock(s settings) (session, error) {
	address := strings.TrimPrefix(s.urls[0], "redis://")
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{address}},
		KeyValidity:    s.lease,
		KeyMajority:    1,
		NoLoopTracking: true,
		TryNextAfter:   500 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	return &rueidislockSession{settings: s, locker: locker}, nil
}

func (s *rueidislockSession) place(lock string) (place, error) {
	return &rueidislockPlace{rueidislockSession: s, name: lock}, nil
}

func (s *rueidislockSession) close() {
	s.locker.Close()
}

func (p *rueidislockPlace) acquire(ctx context.Context) (bool, error) {
	take := p.locker.TryWithContext
	if p.wait {
		take = p.locker.WithContext
	}
	var err error
	p.held, p.cancel, err = take(ctx, p.name)
	if errors.Is(err, rueidislock.ErrNotLocked) && !p.wait {
		return false, nil
	}
	return err == nil, err
}

// The only way to release says nothing.
func (p *rueidislockPlace) release() error {
	lost := p.held.Err()
	p.cancel()
	return lost
}
