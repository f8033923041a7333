// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislock, with what its README recommends for a single server: one key for a lock, and
// NoLoopTracking with Redis 7.0.5 and newer. It waits for messages of the server and renews every
// half of the lease, both by default.
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
